"""The actions that all families of tasks share: solution, judging and score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kabuild.rule import (
    VERDICT_FILE,
    Action,
    Artifact,
    Context,
    GatesInfo,
    Limits,
    Platform,
    Resources,
    Source,
    Toolchain,
)

from .policy import gate_policy
from .signature import Signature, read_signature
from .task import GATES, judge_spec

PYTHON = "${toolchain:python}/bin/python3"
PYTHON_TOOLCHAIN = "//toolchains/python"
TOOLS = "rules/harness/tools"
SANDBOX = ("limits.py", "namespaces.py", "rootfs.py", "seccomp.py")
"""How the judge puts the candidate into a sandbox of its own, inside the action's."""

PRELOAD = ("numpy", "torch", "triton")
JUDGING = Limits(timeout=600.0, memory=12 << 30, processes=512, scratch=2 << 30)


@dataclass(frozen=True)
class Side:
    """The candidate or the baseline, as the judge finds it.

    ``program`` names abi, path and entry for the runner; ``files`` are what ``path`` needs.
    """

    program: Mapping[str, str] = field(hash=False)
    files: Mapping[str, Artifact] = field(hash=False)


@dataclass(frozen=True)
class Runtime:
    """What runners need besides the two sides: libraries, and the native runner's path."""

    files: Mapping[str, Artifact] = field(hash=False, default_factory=dict)
    libraries: tuple[str, ...] = ()
    runner: str = ""
    default_elements: int = 65536


def portable(platform: Platform) -> Platform:
    """The platform without what changes only times: the model of the device and its clocks."""
    return Platform(platform.name, (("arch", platform.get("arch")),))


def judging_resources(platform: Platform, *, timed: bool = False) -> Resources:
    """What it takes to let a candidate run; with ``timed``, to measure it.

    On a CPU many candidates run side by side, and one is measured at a time, alone. A GPU is
    always one candidate's alone: it may use up all of the memory or never end, and no other
    candidate's verdict may depend on that. It takes two CPUs, for the judge and the runner.
    """
    if platform.name == "cpu":
        return Resources(cpus=0, lease="cpu", timed=True) if timed else Resources()
    return Resources(cpus=2, lease=platform.name, timed=timed)


def kernel_name(ctx: Context) -> str:
    """The file name of the editable kernel."""
    source: Source = ctx.attrs["kernel"]
    return source.path.rpartition("/")[2]


def declare_judging(
    ctx: Context, compiled: Action, candidate: Side, baseline: Side, runtime: Runtime
) -> None:
    """``.correctness``, ``.perf``, ``.unseen`` and ``.score`` after ``.compile``.

    ``.retention`` besides, which no score depends on.
    """
    signature = read_signature(ctx.attrs)
    judged = Judging(ctx, signature, candidate, baseline, runtime)
    correctness = judged.gate("correctness", requires=(compiled,))
    perf = judged.gate(
        "perf",
        requires=(compiled, correctness),
        outputs=("samples.json",),
        resources=judging_resources(ctx.platform, timed=True),
        platform=ctx.platform,
    )
    unseen = judged.gate("unseen", requires=(compiled, correctness))
    judged.gate(
        "retention",
        requires=(compiled, correctness, perf, unseen),
        inputs={f"verdicts/{g.gate}.json": g.output(VERDICT_FILE) for g in (perf, unseen)},
        policy=gate_policy(ctx.attrs, "perf"),
        outputs=("samples.json",),
        resources=judging_resources(ctx.platform, timed=True),
        platform=ctx.platform,
    )
    _declare_score(ctx, (compiled, correctness, perf, unseen))


@dataclass(frozen=True)
class Judging:
    """The parts that the judging gates of one task have in common."""

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
        arguments: tuple[str, ...] = (),
        toolchains: tuple[Toolchain, ...] = (),
        **rest: Any,
    ) -> Action:
        """Declare one judging gate, under the task's policy for it unless one is given.

        ``inputs`` are what it needs besides the two sides, ``arguments`` what its program is
        told besides the spec, ``toolchains`` what that takes.
        """
        ctx = self.ctx
        spec = judge_spec(
            ctx,
            gate,
            signature=self.signature,
            candidate=self.candidate.program,
            baseline=self.baseline.program,
            libraries=self.runtime.libraries,
            runner=self.runtime.runner,
            default_elements=self.runtime.default_elements,
            policy=gate_policy(ctx.attrs, gate) if policy is None else policy,
        )
        needed: dict[str, Artifact] = {
            **(inputs or {}),
            "tools": ctx.builtin(TOOLS),
            **{f"tools/{name}": Source(f"sandbox/{name}", "kabuild") for name in SANDBOX},
            "task/reference.py": ctx.attrs["reference"],
            "spec.json": ctx.literal(spec),
            **self.runtime.files,
            **self.candidate.files,
            **self.baseline.files,
        }
        return ctx.gate(
            gate,
            argv=(PYTHON, "tools/gate.py", "spec.json", *arguments),
            inputs=needed,
            mnemonic=gate.capitalize(),
            toolchains=(ctx.toolchain(PYTHON_TOOLCHAIN), *toolchains),
            limits=JUDGING,
            requires=requires,
            preload=PRELOAD,
            nestable=True,
            **{
                "platform": portable(ctx.platform),
                "resources": judging_resources(ctx.platform),
                **rest,
            },
        )


def _declare_score(ctx: Context, gates: tuple[Action, ...]) -> None:
    spec = {
        "schema": 1,
        "gate": "score",
        "policy": ctx.options.policy,
        "gates": [gate.gate for gate in gates],
    }
    inputs: dict[str, Artifact] = {
        f"verdicts/{gate.gate}.json": gate.output(VERDICT_FILE) for gate in gates
    }
    score = ctx.gate(
        "score",
        argv=(PYTHON, "tools/score.py", "spec.json"),
        inputs={"tools": ctx.builtin(TOOLS), "spec.json": ctx.literal(spec), **inputs},
        outputs=("score.json",),
        mnemonic="Score",
        toolchains=(ctx.toolchain(PYTHON_TOOLCHAIN),),
        platform=portable(ctx.platform),
    )
    declared = {action.gate: action for action in (*gates, score)}
    if ctx.number == 1:
        ctx.provide(GatesInfo(tuple(declared[gate] for gate in GATES)))
