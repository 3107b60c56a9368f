"""The actions that all families of tasks share: solution, judging and score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from kabuild.rule import (
    VERDICT_FILE,
    Action,
    Artifact,
    Context,
    Gate,
    Limits,
    Name,
    Platform,
    Resources,
    Role,
    Source,
    Toolchain,
    When,
)

from .expressions import read_ranges
from .judge_files import BASELINE, judge_files
from .originals import PRELOAD_OF_ORIGINALS, reference_files
from .policy import gate_policy
from .signature import Signature, read_signature
from .task import judge_spec
from .terms import POLICIES, gates

PYTHON = "${toolchain:python}/bin/python3"
PYTHON_TOOLCHAIN = "//toolchains/python"
PRELOAD = ("numpy", "torch", "triton")
CHOICE: Mapping[str, str] = {
    "choice": "choice/baseline.json",
    "compiled": "choice/compiled.json",
}
"""The input files with a chosen baseline, by their keys in a specification."""

SCRIPT_TIER = "script"
"""The tier of tasks whose own script judges results."""

JUDGING = Limits(timeout=600.0, memory=12 << 30, processes=4096, scratch=2 << 30)
"""More than both runners' own limits together, with the 300 that each may exceed as root.

So no candidate can reach this limit, which would end the action without a verdict.
"""

CHOOSING = replace(JUDGING, timeout=900.0, memory=32 << 30)
"""The same for the choice of a baseline, for which several compilers run at once."""

GATES = (
    Gate(gates.COMPILE, role=Role.COMPILES, share="compiled", watched=True),
    Gate(gates.CORRECTNESS, share="correct", watched=True),
    Gate(gates.PERF, role=Role.TIMES, watched=True),
    Gate(gates.UNSEEN, share="unseen"),
    Gate(gates.SCORE, role=Role.SCORE, policies=tuple(POLICIES)),
    Gate(gates.RETENTION, When.ON_REQUEST),
    Gate(gates.ADMISSION, When.VALIDATE),
)
"""The gates of every family of kernel tasks, in the order of judging."""


@dataclass(frozen=True)
class Side:
    """The candidate or the baseline, in the judge's inputs.

    ``program`` names abi, path and entry for the runner; ``files`` are the program's files;
    ``names`` are the user's file names for messages.
    """

    program: Mapping[str, str] = field(hash=False)
    files: Mapping[str, Artifact] = field(hash=False)
    names: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Runtime:
    """The files that runners need besides the two sides, by path."""

    files: Mapping[str, Artifact] = field(hash=False, default_factory=dict)
    libraries: tuple[str, ...] = ()
    runner: str = ""
    launch_filter: str = ""
    default_elements: int = 65536


def portable(platform: Platform) -> Platform:
    """The platform without properties that only affect times: device model and clocks."""
    return Platform(platform.name, (("arch", platform.get("arch")),))


def judging_resources(platform: Platform, *, timed: bool = False) -> Resources:
    """The resources for running a candidate, or with ``timed`` for measuring it.

    On a CPU, many candidates run at once, but only one is measured at a time, alone. A GPU always
    belongs to one candidate, which may use up all memory or never end, and no other candidate's
    verdict may depend on that. A GPU action takes two CPUs, for the judge and the runner.
    """
    if platform.name == "cpu":
        return Resources(cpus=0, lease="cpu", timed=True) if timed else Resources()
    return Resources(cpus=2, lease=platform.name, timed=timed)


def kernel_name(ctx: Context) -> str:
    """The file name of the editable kernel; a module in a JSON file is named after that file."""
    source: Source = ctx.attrs["kernel"]
    name = source.path.rpartition("/")[2]
    return f"{name.removesuffix('.json')}.py" if ctx.attrs.get("member") else name


def declare_judging(
    ctx: Context,
    compiled: Action,
    candidate: Side,
    baseline: Side,
    runtime: Runtime,
    *,
    chosen: Action | None = None,
) -> None:
    """Declare ``.correctness``, ``.perf``, ``.unseen`` and ``.score`` after ``.compile``.

    ``chosen`` is the action that chooses the baseline's mode, if it has several. Also declares
    ``.retention``, on which no score depends. If no config can be hidden, there is neither
    ``.unseen`` nor ``.retention``.
    """
    signature = read_signature(ctx.attrs)
    judged = Judging(ctx, signature, candidate, baseline, runtime)
    correctness = judged.gate(gates.CORRECTNESS, requires=(compiled,))
    perf = judged.gate(
        gates.PERF,
        requires=(compiled, correctness),
        inputs={path: chosen.output(path.rpartition("/")[2]) for path in CHOICE.values()}
        if chosen
        else {},
        said=CHOICE if chosen else {},
        outputs=("samples.json",),
        resources=judging_resources(ctx.platform, timed=True),
        platform=ctx.platform,
    )
    if not _has_hidden_configs(ctx):
        _declare_score(ctx, (compiled, correctness, perf), without=(gates.UNSEEN,))
        return
    unseen = judged.gate(gates.UNSEEN, requires=(compiled, correctness))
    judged.gate(
        gates.RETENTION,
        requires=(compiled, correctness, perf, unseen),
        inputs={f"verdicts/{g.gate}.json": g.output(VERDICT_FILE) for g in (perf, unseen)},
        policy=gate_policy(ctx.attrs, gates.PERF, ctx.platform_spec),
        outputs=("samples.json",),
        resources=judging_resources(ctx.platform, timed=True),
        platform=ctx.platform,
    )
    _declare_score(ctx, (compiled, correctness, perf, unseen))


def declare_choice(ctx: Context, baseline: Side, runtime: Runtime) -> Action:
    """Declare ``.baseline``, which chooses the mode of a PyTorch baseline, without a candidate.

    It runs behind the launch filter if there is one, as it does beside candidates.
    """
    files = {path: file for path, file in runtime.files.items() if path == runtime.launch_filter}
    filtered = Runtime(files, launch_filter=runtime.launch_filter)
    return Judging(ctx, read_signature(ctx.attrs), baseline, baseline, filtered).choice()


@dataclass(frozen=True)
class Judging:
    """The common parts of one task's judging gates."""

    ctx: Context
    signature: Signature
    candidate: Side
    baseline: Side
    runtime: Runtime

    def gate(
        self,
        gate: str,
        *,
        requires: tuple[Action, ...],
        policy: Mapping[str, Any] | None = None,
        inputs: Mapping[str, Artifact] | None = None,
        said: Mapping[str, Any] | None = None,
        arguments: tuple[str, ...] = (),
        toolchains: tuple[Toolchain, ...] = (),
        **rest: Any,
    ) -> Action:
        """Declare one judging gate, by default with the task's policy for it.

        ``inputs``, ``arguments`` and ``toolchains`` are additional ones; ``said`` is added to the
        specification.
        """
        ctx = self.ctx
        return ctx.gate(
            gate,
            argv=(PYTHON, "tools/gate.py", "spec.json", *arguments),
            inputs=self._files(gate, policy, inputs or {}, said or {}),
            mnemonic=gate.capitalize(),
            toolchains=(ctx.toolchain(PYTHON_TOOLCHAIN), *toolchains),
            limits=JUDGING,
            requires=requires,
            preload=_preload(ctx),
            nestable=True,
            **{
                "names": self.candidate.names,
                "platform": portable(ctx.platform),
                "resources": judging_resources(ctx.platform),
                **rest,
            },
        )

    def choice(self) -> Action:
        """Declare ``.baseline``: the mode of a PyTorch baseline, for all candidates of the task.

        It is not a gate, as nothing is judged. Both sides are the baseline. Its inputs are drawn at
        random, so the salt is not in its key.
        """
        ctx = self.ctx
        policy = gate_policy(ctx.attrs, gates.PERF, ctx.platform_spec)
        policy.pop("distributions", None)  # no untimed calls are made here
        return ctx.action(
            BASELINE,
            argv=(PYTHON, "tools/gate.py", "spec.json"),
            inputs=self._files(BASELINE, policy, {}, {"salt": ""}),
            outputs=(VERDICT_FILE, *(path.rpartition("/")[2] for path in CHOICE.values())),
            mnemonic=BASELINE.capitalize(),
            toolchains=(ctx.toolchain(PYTHON_TOOLCHAIN),),
            limits=CHOOSING,
            preload=_preload(ctx),
            nestable=True,
            facts=CHOICE["choice"].rpartition("/")[2],
            platform=ctx.platform,
            resources=judging_resources(ctx.platform, timed=True),
        )

    def _files(
        self,
        gate: str,
        policy: Mapping[str, Any] | None,
        inputs: Mapping[str, Artifact],
        said: Mapping[str, Any],
    ) -> dict[str, Artifact]:
        """The inputs of a judge."""
        ctx = self.ctx
        spec = judge_spec(
            ctx,
            gate,
            signature=self.signature,
            candidate=self.candidate.program,
            baseline=self.baseline.program,
            libraries=self.runtime.libraries,
            runner=self.runtime.runner,
            launch_filter=self.runtime.launch_filter,
            default_elements=self.runtime.default_elements,
            policy=gate_policy(ctx.attrs, gate, ctx.platform_spec) if policy is None else policy,
        )
        abis = {self.candidate.program["abi"], self.baseline.program["abi"]}
        return {
            **inputs,
            **judge_files(ctx, "tools", [gate], abis),
            **ctx.sandbox_kit("tools"),
            **reference_files(ctx),
            "spec.json": ctx.literal({**spec, **said}),
            **self.runtime.files,
            **self.candidate.files,
            **self.baseline.files,
        }


def _preload(ctx: Context) -> tuple[str, ...]:
    """The modules that a judge's warm process imports.

    The reference of an imported task makes tensors without data, for which PyTorch imports its
    compiler. That import asks for devices, and a process that has asked must not be forked. So it
    is left out if a GPU is used.
    """
    imported = ctx.attrs["library"] and ctx.platform.name == "cpu"
    return PRELOAD_OF_ORIGINALS if imported else PRELOAD


def _has_hidden_configs(ctx: Context) -> bool:
    """Whether configs can be drawn; if a script judges, it uses only its own sizes."""
    if _tier(ctx) == SCRIPT_TIER:
        return False
    ranges = read_ranges(ctx.attrs["dims"]).values()
    return len(ctx.attrs["dtypes"]) > 1 or any(low < high for low, high in ranges)


def _tier(ctx: Context) -> str:
    return str(ctx.attrs.get("tier", ""))


def _declare_score(ctx: Context, scored: tuple[Action, ...], without: tuple[str, ...] = ()) -> None:
    """Declare ``.score`` for a task that lacks the gates ``without``."""
    spec = {
        "schema": 1,
        "gate": gates.SCORE,
        "policy": ctx.options.policy,
        "gates": [gate.gate for gate in scored],
        **({"without": list(without)} if without else {}),
        **({"tier": SCRIPT_TIER} if _tier(ctx) == SCRIPT_TIER else {}),
    }
    inputs: dict[str, Artifact] = {
        f"verdicts/{gate.gate}.json": gate.output(VERDICT_FILE) for gate in scored
    }
    ctx.gate(
        gates.SCORE,
        argv=(PYTHON, "tools/score.py", "spec.json"),
        inputs={
            **judge_files(ctx, "tools", [gates.SCORE]),
            "spec.json": ctx.literal(spec),
            **inputs,
        },
        outputs=("score.json",),
        mnemonic="Score",
        toolchains=(ctx.toolchain(PYTHON_TOOLCHAIN),),
        platform=portable(ctx.platform),
    )
