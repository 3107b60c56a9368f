"""Selects the judge's files for an action: only those that it imports.

So an edit of the clock repeats only the judging of speed. A package is included whole: every gate
that has it imports each of its modules. ``tests/rules/harness/test_judge_files.py`` checks
this against the actual imports.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kabuild.rule import Artifact, Context

from .terms import gates

TOOLS = "rules/harness/tools"
DEVICE = "device"
"""The platform's part that judges need: ``tools/base/device_platform.py``."""
ANALYZE, COUNTERS, PROOF, BASELINE = "analyze", "counters", "proof", "baseline"
"""The gates that count accesses, that have a device count, and that prove imports, and the action
that chooses a baseline's mode. None of the judge's files names them, so its terms do not."""


def _terms(*names: str) -> tuple[str, ...]:
    return tuple(f"terms/{name}.py" for name in ("__init__", *names))


def _truth(*names: str) -> tuple[str, ...]:
    return tuple(f"truth/{name}.py" for name in ("__init__", *names))


VERDICT_FILES = _terms("reasons", "verdict")
"""The files that write ``verdict.json``."""

COMPILE_FILES = (*VERDICT_FILES, "terms/reading.py")
"""Those, and what tells a source that cannot be read from a machine that cannot read."""

_POLICY = _terms("dtypes", "policy", "tolerance")
_JUDGE = ("gate.py", "base", "gpu", "runners", *VERDICT_FILES, *_POLICY)
_COMPARING = (*_JUDGE, "truth")
_PATIENCE = ("alone/__init__.py", "alone/patience.py")
_EDGES = ("correctness/__init__.py", "correctness/edges.py")
_TIMING = (*_COMPARING, *_EDGES, *_terms("perf", "speedup"), "perf")

_ORACLE = _truth(
    "dispatch",
    "distributions",
    "keeper",
    "oracle",
    "plain_tensors",
    "precision",
    "process_state",
    "refused_calls",
    "rounding",
    "task_code",
)
_ASSESSING = _truth(
    "assessment", "compared", "comparison", "draws", "finding", "samples", "sampling", "tolerance"
)

GATE_FILES: Mapping[str, tuple[str, ...]] = {
    gates.CORRECTNESS: (*_COMPARING, *_terms("correctness"), "correctness"),
    gates.PERF: _TIMING,
    gates.UNSEEN: (*_COMPARING, *_terms("unseen"), "unseen"),
    BASELINE: (*_TIMING, "baseline"),
    gates.RETENTION: (*_TIMING, "retention"),
    gates.ADMISSION: (*_COMPARING, *_EDGES, "correctness/determinism.py", "admission"),
    PROOF: (*_JUDGE, *_ORACLE, *_ASSESSING, *_truth("compiled_cache", "side"), "proof"),
    gates.SANITIZE: (*_JUDGE, *_ORACLE, *_EDGES, "alone", "sanitize"),
    ANALYZE: (
        *_JUDGE,
        *_ORACLE,
        *_EDGES,
        *_PATIENCE,
        *(f"sanitize/{name}.py" for name in ("__init__", "places")),
        "analyze",
    ),
    COUNTERS: (*_JUDGE, *_ORACLE, "alone", "counters"),
    gates.SCORE: ("score.py", *VERDICT_FILES, *_terms("gates", "scoring", "speedup")),
}
"""The packages and files of ``tools/`` for each gate."""

AHEAD_FILES = (
    *(f"base/{name}.py" for name in ("__init__", "places", "program", "shapes", "tensors")),
    *_terms("dtypes", "launcher_types", "reasons"),
)
"""The files with which compile gates call a module without a device."""

AHEAD_CALL_FILES = (
    "base/layouts.py",
    *(f"pyrunner/{name}.py" for name in ("__init__", "module")),
    *(f"pyrunner_call/{name}.py" for name in ("__init__", "call_tree", "constructing")),
)
"""Those that make a task's call, besides."""

_PYTHON = ("pyrunner",)
_DEVICE = ("pyrunner_device", *_terms("launcher_types"))
_ALONE = "pyrunner_alone"
"""The package that calls a Triton program once, by itself, for the gate ``counters``."""
_COUNTED = "triton_counted"
"""The package with which runners of Triton programs count accesses, for the gate ``analyze``."""


def runner_files(abi: str, platform: str) -> tuple[str, ...]:
    """The files of ``tools/`` that run a program of ``abi``, besides those of every judge."""
    if abi == "hip":
        return ()
    if abi == "call":
        elsewhere = ("triton_cpu",) if platform == "cpu" else _DEVICE
        return (*_PYTHON, "pyrunner_call", *elsewhere)
    if platform != "cpu":
        return (*_PYTHON, *_DEVICE)
    return (*_PYTHON, "triton_apart", "triton_cpu") if abi == "python" else _PYTHON


def verdict_files(ctx: Context) -> Mapping[str, Artifact]:
    """The files with which a compile gate judges, beside its program in ``tools/``."""
    return {f"tools/{path}": ctx.builtin(f"{TOOLS}/{path}") for path in COMPILE_FILES}


def judge_files(
    ctx: Context, below: str, gates: Iterable[str], abis: Iterable[str] = ()
) -> Mapping[str, Artifact]:
    """The files for ``gates`` that judge programs of ``abis``, placed below ``below``.

    Accesses are counted on the CPU, whatever the platform is.
    """
    gates, abis = list(gates), list(abis)
    platforms = (ctx.platform.name, *(["cpu"] if ANALYZE in gates else []))
    needed = [path for gate in gates for path in GATE_FILES[gate]]
    needed += [path for abi in abis for name in platforms for path in runner_files(abi, name)]
    needed += [_COUNTED] if ANALYZE in gates and "python" in abis else []
    needed += [_ALONE] if COUNTERS in gates and "python" in abis else []
    files = {f"{below}/{path}": ctx.builtin(f"{TOOLS}/{path}") for path in sorted(set(needed))}
    return {**files, **(platform_file(ctx, below, DEVICE) if "runners" in needed else {})}


def platform_file(ctx: Context, below: str, part: str) -> Mapping[str, Artifact]:
    """The file of the platform's directory for ``part``; none on ``cpu``."""
    if ctx.platform.name == "cpu":
        return {}
    name = f"{ctx.platform.name}_{part}.py"
    return {f"{below}/{name}": ctx.platform_file(f"tools/{name}")}
