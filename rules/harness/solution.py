"""``.agent``: the source of a task's solution, either a replay or an agent's session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kabuild.rule import Action, Artifact, Context, Limits, Source, Toolchain

from .brief import brief_text
from .configs import visible_configs
from .gates import (
    PRELOAD,
    PYTHON,
    PYTHON_TOOLCHAIN,
    Runtime,
    Side,
    judging_resources,
    kernel_name,
    portable,
)
from .judge_files import ANALYZE, judge_files
from .originals import reference_files
from .policy import gate_policy
from .providers import AgentInfo, HipInfo
from .signature import read_signature
from .task import judge_spec
from .terms import gates

AGENT_TOOLS = "rules/agent/tools"
PROMPT = "rules/agent/prompt.md"
SHEETS = "rules/agent/sheets"
CHECKED = (gates.CORRECTNESS, gates.PERF)
OVERHEAD = 120.0
"""Seconds for the session's work before and after its agent runs."""

OWN_MEMORY = 6 << 30
"""Bytes for the session itself and its checks."""


@dataclass(frozen=True)
class Compiling:
    """How a kernel of a task is compiled.

    Attributes:
        argv: the command; the kernel is ``candidate/<name>``, results are below ``out``.
        inputs: the command's inputs besides the kernel.
        toolchains: the command's toolchains.
        artifact: the file that it makes besides a verdict.
    """

    argv: tuple[str, ...]
    inputs: Mapping[str, Artifact] = field(hash=False)
    toolchains: tuple[Toolchain, ...]
    artifact: str


@dataclass(frozen=True)
class Counted:
    """How a check counts a kernel's memory accesses.

    Attributes:
        compiling: how the counting kernel is compiled.
        outputs: further outputs of the command besides the artifact, for the judge.
        runtime: files that runners of such a kernel need.
        policy: of the gate ``analyze``.
        ranks: the architecture whose times are modelled to rank kernels; empty for none.
    """

    compiling: Compiling
    outputs: tuple[str, ...]
    runtime: Runtime
    policy: Mapping[str, Any] = field(hash=False, default_factory=dict)
    ranks: str = ""


@dataclass(frozen=True)
class Bench:
    """What a check needs in order to judge as the gates do.

    ``language`` names the sheet that an agent gets. ``abi`` is the candidate's. ``said`` is what
    runners are told about the candidate besides its ABI and path. ``counted`` is None if accesses
    are not counted. ``kernel`` is the task's own, if it is not a file of the task.
    """

    language: str
    abi: str
    compiling: Compiling
    baseline: Side
    runtime: Runtime
    said: Mapping[str, str] = field(hash=False, default_factory=dict)
    counted: Counted | None = None
    kernel: Artifact | None = None


def trials(ctx: Context) -> Iterator[Context]:
    """The task once for each trial of its agent; a replay has one trial."""
    agent = ctx.provider(ctx.options.agent, AgentInfo)
    replayed = ctx.options.solution is not None or agent.replays is not None
    for number in range(1, 1 + (1 if replayed else ctx.options.trials)):
        yield ctx.trial(number)


def agent_counts(ctx: Context) -> HipInfo | None:
    """What counts memory accesses for the agent of this build, if it declares something."""
    return ctx.provider(ctx.options.agent, AgentInfo).counts


NO_SOLUTION = "judge the task's own kernel with --agent=none, or yours with --solution=FILE"
"""Advice for the case that an agent that replays has no solution of a task."""


def declare_solution(ctx: Context, bench: Bench) -> Artifact:
    """The kernel to judge: given by a person, replayed, or handed in by an agent.

    An existing file is used directly, without an action. Only the editable file is taken.
    """
    agent = ctx.provider(ctx.options.agent, AgentInfo)
    given = ctx.options.solution
    name = kernel_name(ctx)
    if given is not None:
        return Source(f"{given.path}{name}", given.root) if given.path.endswith("/") else given
    if agent.replays is None:
        return _declare_session(ctx, agent, bench).output(f"solution/{name}")
    if agent.replays:
        base: Source = ctx.attrs["solutions"] or ctx.package_file("solutions")
        return Source(f"{base.path}/{agent.replays}/{name}", base.root)
    own: Artifact = bench.kernel or ctx.attrs["kernel"]
    return own


def _declare_session(ctx: Context, agent: AgentInfo, bench: Bench) -> Action:
    """Declare an agent's session. Its inputs are the files that it may see, none of them hidden."""
    counting = bench.counted.compiling.toolchains if bench.counted else ()
    needed = (*bench.compiling.toolchains, *agent.toolchains, *counting)
    toolchains = dict.fromkeys((ctx.toolchain(PYTHON_TOOLCHAIN), *needed))
    homes = (f"--toolchain={t.name}=${{toolchain:{t.name}}}" for t in toolchains)
    inputs: dict[str, Artifact] = {
        "tools": ctx.builtin(AGENT_TOOLS),
        **ctx.sandbox_kit("tools/sandbox", supervision=True),
        "agent.json": ctx.literal(_session_spec(ctx, agent, bench)),
        "prompt.md": agent.prompt or ctx.builtin(PROMPT),
        **_desk(ctx, bench),
        **_check_files(ctx, bench),
        **{f"agent/{path}": file for path, file in agent.files.items()},
    }
    return ctx.action(
        "agent",
        argv=(PYTHON, "tools/session.py", "agent.json", *homes),
        inputs=inputs,
        outputs=("solution", "agent.json", "transcript.jsonl", "calls.jsonl"),
        mnemonic="Solve",
        toolchains=tuple(toolchains),
        limits=Limits(
            timeout=agent.seconds + OVERHEAD,
            memory=agent.memory + OWN_MEMORY,
            processes=1024,
            scratch=2 << 30,
        ),
        preload=PRELOAD,
        nestable=True,
        network=agent.network,
        secrets=agent.secrets,
        facts="agent.json",
        journal=agent.resumes,
        sandboxed=True,
        resources=judging_resources(ctx.platform),
        platform=portable(ctx.platform),
    )


def _session_spec(ctx: Context, agent: AgentInfo, bench: Bench) -> dict[str, Any]:
    """``agent.json``: everything that the session knows. It never contains the salt."""
    artifact = bench.compiling.artifact
    specs = {
        gate: _check_spec(
            ctx, gate, bench, bench.runtime, gate_policy(ctx.attrs, gate, ctx.platform_spec)
        )
        for gate in CHECKED
    }
    check = {"compile": list(bench.compiling.argv), "artifact": artifact, "specs": specs}
    return {
        "schema": 1,
        "name": agent.name,
        "agent": dict(agent.definition),
        "kernel": kernel_name(ctx),
        "trial": ctx.number,
        "run": ctx.options.run,
        "memory": agent.memory,
        "check": {**check, "counting": _counting(ctx, bench)},
    }


def _counting(ctx: Context, bench: Bench) -> dict[str, Any] | None:
    """How accesses are counted, as in the gate ``analyze``."""
    if bench.counted is None:
        return None
    counted = bench.counted
    spec = _check_spec(ctx, ANALYZE, bench, counted.runtime, counted.policy)
    return {
        "compile": list(counted.compiling.argv),
        "outputs": list(counted.outputs),
        "spec": {**spec, "platform": "cpu"},
        **({"ranks": counted.ranks} if counted.ranks else {}),
    }


def _check_spec(
    ctx: Context, gate: str, bench: Bench, runtime: Runtime, policy: Mapping[str, Any]
) -> dict[str, Any]:
    """A gate's specification for a check, with a salt that the session draws."""
    artifact = f"candidate/{bench.compiling.artifact}"
    spec = judge_spec(
        ctx,
        gate,
        signature=read_signature(ctx.attrs),
        candidate={
            "abi": bench.abi,
            "path": artifact,
            **(bench.said or {"entry": ctx.attrs["entry"]}),
        },
        baseline=bench.baseline.program,
        libraries=runtime.libraries,
        runner=runtime.runner,
        launch_filter=runtime.launch_filter,
        default_elements=runtime.default_elements,
        policy=policy,
    )
    return {**spec, "salt": ""}


def _desk(ctx: Context, bench: Bench) -> dict[str, Artifact]:
    """The files of the agent's working directory; only the kernel may be changed."""
    signature = read_signature(ctx.attrs)
    configs = visible_configs(ctx.attrs, signature, ctx.platform.name)
    original: Artifact = next(iter(ctx.attrs["originals"]), ctx.attrs["reference"])
    return {
        f"desk/{kernel_name(ctx)}": bench.kernel or ctx.attrs["kernel"],
        "desk/BRIEF.md": ctx.text(
            brief_text(ctx, signature, kernel_name(ctx), counts=bench.counted is not None)
        ),
        "desk/reference.py": bench.kernel or original,
        "desk/configs.json": ctx.literal([config.to_json() for config in configs]),
        "desk/CHEATSHEET.md": ctx.builtin(f"{SHEETS}/{bench.language}.md"),
        "desk/TARGET.md": _target_sheet(ctx),
    }


def _target_sheet(ctx: Context) -> Artifact:
    """The platform's sheet for agents, from the platform's directory."""
    if ctx.platform.name == "cpu":
        return ctx.builtin(f"{SHEETS}/cpu.md")
    return ctx.platform_file("sheet.md")


def _check_files(ctx: Context, bench: Bench) -> dict[str, Artifact]:
    """The files of a check, laid out as for the gates."""
    abis = {bench.abi, bench.baseline.program["abi"]}
    judged, counting, counted = [*CHECKED], {}, {}
    if bench.counted is not None:
        judged.append(ANALYZE)
        counting = {f"toolkit/{p}": f for p, f in bench.counted.compiling.inputs.items()}
        counted = {f"counted/{p}": f for p, f in bench.counted.runtime.files.items()}
    return {
        **counting,
        **counted,
        **{f"toolkit/{path}": file for path, file in bench.compiling.inputs.items()},
        **judge_files(ctx, "check/tools", judged, abis),
        **ctx.sandbox_kit("check/tools"),
        **{f"check/{path}": file for path, file in reference_files(ctx).items()},
        **{f"check/{path}": file for path, file in bench.runtime.files.items()},
        **{f"check/{path}": file for path, file in bench.baseline.files.items()},
    }
