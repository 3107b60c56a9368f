"""Tasks whose boundary is a call: solutions replace a Python file, whose definitions are called."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from kabuild.rule import (
    Action,
    Artifact,
    AttributeProblem,
    Context,
    Rule,
    Source,
    attr,
    suggest,
)

from ..harness.admission import declare_admission, expert_kernel
from ..harness.ahead import ahead_inputs, handed_on
from ..harness.calls import Call, read_call
from ..harness.gates import (
    GATES,
    PYTHON,
    PYTHON_TOOLCHAIN,
    SCRIPT_TIER,
    Runtime,
    Side,
    declare_judging,
    kernel_name,
    portable,
)
from ..harness.hip import check_kernel_suffix
from ..harness.judge_files import AHEAD_CALL_FILES, TOOLS, verdict_files
from ..harness.modules import MODULE, compile_module, side_of_module
from ..harness.names import check_name
from ..harness.proof import PROOF, declare_proof
from ..harness.signature import read_signature
from ..harness.solution import Bench, Compiling, declare_solution, trials
from ..harness.task import SUBTARGETS, TASK_ATTRS, check_task
from ..harness.terms import gates

ADAPTER = "task/adapter.py"
MODULES = "task/modules"
AHEAD = ("ahead.py", "ahead_platform.py", "ahead_run.py", "ahead_stand_in.py")
ACCEPTED = ("python",)
ELEMENTS = 1 << 18
"""Elements of a drawn config's tensor on ``cpu``, where PyTorch is faster than an interpreter."""

STATE_BY = ("name", "order")
TIERS = ("declared", SCRIPT_TIER)


def implement(ctx: Context) -> None:
    """Solution, normalise and check both sides, judge, score."""
    check_kernel_suffix(ctx, ".py")
    own = _declare_member(ctx) if ctx.attrs["member"] else None
    baseline = _declare_compile(ctx, "baseline.compile", own or ctx.attrs["kernel"])
    theirs = _side(ctx, "baseline", baseline)
    runtime = _runtime(ctx)
    said = {name: value for name, value in theirs.program.items() if name not in {"abi", "path"}}
    bench = Bench("call", "call", _compiling(ctx), theirs, runtime, said, kernel=own)
    for trial in trials(ctx):
        kernel = declare_solution(trial, bench)
        candidate = _declare_compile(trial, gates.COMPILE, kernel, requires=(baseline,))
        declare_judging(trial, candidate, _side(trial, "candidate", candidate), theirs, runtime)
    expert = expert_kernel(ctx)
    compiled = _declare_compile(ctx, "expert.compile", expert) if expert else None
    declare_admission(ctx, theirs, _side(ctx, "candidate", compiled) if compiled else None, runtime)
    declare_proof(ctx, theirs, runtime)


def read_boundary(attrs: Mapping[str, Any]) -> Call:
    """The call of a task. Raises AttributeProblem."""
    return read_call(attrs["call"], read_signature(attrs), attrs.get("entry") or "")


def boundary_json(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """The call in the form for runners."""
    call = read_boundary(attrs)
    return {
        **call.to_json(),
        "names": [call.entry, *([attrs["baseline"]] if attrs["baseline"] else [])],
        "state_by": attrs["state_by"],
    }


def _declare_member(ctx: Context) -> Artifact:
    """The module that is a string of a JSON file."""
    own: Source = ctx.attrs["kernel"]
    source = f"kernel/{own.path.rpartition('/')[2]}"
    read = ctx.action(
        "module",
        argv=(
            *(PYTHON, "tools/read_member.py", source),
            *(ctx.attrs["member"], f"out/{kernel_name(ctx)}"),
        ),
        inputs={
            "tools/read_member.py": ctx.builtin("rules/call/tools/read_member.py"),
            source: own,
        },
        outputs=(kernel_name(ctx),),
        mnemonic="Read",
        toolchains=(ctx.toolchain(PYTHON_TOOLCHAIN),),
        platform=portable(ctx.platform),
    )
    return read.output(kernel_name(ctx))


def _declare_compile(
    ctx: Context, part: str, kernel: Artifact, *, requires: tuple[Action, ...] = ()
) -> Action:
    ahead = handed_on(ctx)
    return compile_module(ctx, part, kernel, _compiling(ctx), ahead=ahead, requires=requires)


def _compiling(ctx: Context) -> Compiling:
    """How a module is read, checked and normalised; for a GPU, what compiles its kernels."""
    names = boundary_json(ctx.attrs)["names"]
    argv = (
        *(PYTHON, "tools/read_module.py", f"--source=candidate/{kernel_name(ctx)}", "--out=out"),
        *(f"--name={name}" for name in names),
        *((f"--until={ctx.attrs['until']}",) if ctx.attrs["until"] else ()),
    )
    inputs: dict[str, Artifact] = {
        "tools/read_module.py": ctx.builtin("rules/call/tools/read_module.py"),
        "tools/kernel_source.py": ctx.builtin("rules/triton2triton/tools/kernel_source.py"),
        **verdict_files(ctx),
    }
    if handed_on(ctx):
        argv = (*argv, "--ahead=ahead.json")
        inputs |= _ahead(ctx)
    return Compiling(argv, inputs, (ctx.toolchain(PYTHON_TOOLCHAIN),), MODULE)


def _ahead(ctx: Context) -> Mapping[str, Artifact]:
    """What calls a module for a GPU that need not be there."""
    return {
        **ahead_inputs(ctx, _called(ctx)),
        **_runtime(ctx).files,
        **{f"tools/{path}": ctx.builtin(f"{TOOLS}/{path}") for path in AHEAD_CALL_FILES},
        **{f"tools/{name}": ctx.builtin(f"rules/triton2triton/tools/{name}") for name in AHEAD},
        "tools/ahead_call.py": ctx.builtin("rules/call/tools/ahead_call.py"),
    }


def _runtime(ctx: Context) -> Runtime:
    """Any kernel may be launched, also PyTorch's, so there is no launch filter."""
    adapter = ctx.attrs["adapter"]
    files = {ADAPTER: adapter} if adapter else {}
    modules: tuple[Source, ...] = ctx.attrs["modules"]
    files.update((f"{MODULES}/{file.path.rpartition('/')[2]}", file) for file in modules)
    return Runtime(files, default_elements=ELEMENTS)


def _called(ctx: Context) -> dict[str, str]:
    """The call, and the task's files that it may use, as programs name them."""
    return {
        "call": json.dumps(boundary_json(ctx.attrs), sort_keys=True, separators=(",", ":")),
        **({"adapter": ADAPTER} if ctx.attrs["adapter"] else {}),
        **({"modules": MODULES} if ctx.attrs["modules"] else {}),
    }


def _side(ctx: Context, role: str, compiled: Action) -> Side:
    entry = boundary_json(ctx.attrs)["names"][0]
    program = {"abi": "call", "entry": entry, **_called(ctx)}
    return side_of_module(role, program, compiled, ahead=handed_on(ctx))


def _check(attrs: Mapping[str, Any]) -> None:
    check_task({**attrs, "entry": read_boundary(attrs).entry})
    if attrs["baseline"]:
        check_name(attrs["baseline"], "baseline: must be a function's name", ("baseline",))
    if attrs["member"] and not attrs["kernel"].path.endswith(".json"):
        what = f"'{attrs['kernel'].path}' is not a .json file, which 'member' is read from"
        raise AttributeProblem(what, ("kernel",))
    _check_modules(attrs["modules"])
    for index, language in enumerate(attrs["accepts"]):
        if language not in ACCEPTED:
            hint = suggest(language, ACCEPTED) or f"known: {', '.join(ACCEPTED)}"
            what = f"solutions in '{language}' cannot be judged"
            raise AttributeProblem(what, ("accepts", index), hint)


def _check_modules(files: Sequence[Source]) -> None:
    """A module is imported by the name of its file."""
    stems: set[str] = set()
    for index, file in enumerate(files):
        name = file.path.rpartition("/")[2]
        stem = name.removesuffix(".py")
        if stem == name or not stem.isidentifier():
            what = f"'{name}' cannot be imported: it is not a Python file with a module's name"
            raise AttributeProblem(what, ("modules", index))
        if stem in stems:
            raise AttributeProblem(f"two modules are called '{stem}'", ("modules", index))
        stems.add(stem)


RULE = Rule(
    kind="call",
    doc="Replace a Python file: a function, a class or a Triton kernel that is called.",
    implement=implement,
    attrs={
        **TASK_ATTRS,
        "entry": attr.string("The name that a solution defines, if 'call' calls another function."),
        "call": attr.string("The call: 'y = ModelNew(features)(x)'.", required=True),
        "baseline": attr.string("The name in 'kernel' that stands for the entry: 'Model'."),
        "until": attr.string(
            "The start of the line that ends a module: the module's tests below it are never run."
        ),
        "member": attr.string(
            "The member of 'kernel', a JSON file, that is the module: 'reference'."
        ),
        "adapter": attr.file(
            "Functions of the task that 'call' may use: adapter.py.", default="adapter.py"
        ),
        "modules": attr.files("Python files of the task that solutions may import by name."),
        "accepts": attr.strings("What a solution may be.", default=ACCEPTED),
        "state": attr.table("Tensors that hold for a config: { weight = 'T[rows, cols]' }."),
        "state_by": attr.string(
            "How a candidate's state is matched.", default="name", values=STATE_BY
        ),
        "tier": attr.string(
            "Who judges results: the declaration, or an imported task's own script.",
            default=TIERS[0],
            values=TIERS,
        ),
        "updates": attr.strings("The inputs that a call changes: they are outputs, too."),
        "layout": attr.table("Strides of tensors: { q = '[3 * dim, 1]', y = 'any' }."),
        "inputs": attr.table("Input tensors: { x = 'T[rows, cols]' }."),
        "outputs": attr.table("Output tensors: { y = 'T[rows, cols]' }."),
        "dims": attr.table("The shape space: { rows = '1..65536' }."),
    },
    subtargets=(*SUBTARGETS, "module", "baseline.compile"),
    gates=(*GATES, PROOF),
    check=_check,
)
