"""``model_profile``, ``model_compiled`` and others: a user's model is run in a sandbox.

``kabuild model`` declares these targets; they are not written into a BUILD.toml.
"""

from __future__ import annotations

from collections.abc import Mapping

from kabuild.rule import Artifact, Context, Limits, Resources, Rule, attr

from ..harness.compilers import home
from ..harness.gates import PYTHON, PYTHON_TOOLCHAIN, judging_resources, portable
from ..harness.judge_files import DEVICE, TOOLS, platform_file

FACTS = "facts.json"
ANSWERS, STEPS = "answers", "steps"
RUNNING = Limits(timeout=600.0, memory=12 << 30, processes=256, scratch=2 << 30)
PRELOAD = ("numpy", "torch")
COMPILER = "torch._dynamo"
"""Also preloaded on a processor. Its import asks for devices, and a process that has asked cannot
have a child that uses one."""

_DEVICE_FILES = ("base", "terms")
_STATISTICS = (
    *("perf/__init__.py", "perf/confidence.py"),
    *("terms/__init__.py", "terms/speedup.py"),
)


def profile(ctx: Context) -> None:
    """Time the model's operators, alone on a device or on the processor."""
    device, arguments = _device(ctx)
    ctx.action(
        "",
        argv=(PYTHON, "tools/model_profile.py", "model.py", f"out/{FACTS}", *arguments),
        inputs={"model.py": ctx.attrs["model"], **_tools(ctx, "model_profile.py"), **device},
        outputs=(FACTS,),
        mnemonic="Profile",
        toolchains=(ctx.toolchain(PYTHON_TOOLCHAIN),),
        limits=RUNNING,
        resources=judging_resources(ctx.platform, timed=True),
        preload=_preload(ctx),
    )


def compiled(ctx: Context) -> None:
    """Time the model after ``torch.compile``, beside the model as it is.

    On the processor Inductor calls clang of the pinned toolchain. On a device it has Triton, which
    links what launches its kernels with the machine's C compiler.
    """
    device, arguments = _device(ctx)
    toolchains = [ctx.toolchain(PYTHON_TOOLCHAIN)]
    compiler: dict[str, Artifact] = {}
    if not device:
        clang = ctx.toolchain("//toolchains/zig")
        toolchains.append(clang)
        arguments = (f"--clang={home(clang)}",)
        compiler = {
            "tools/inductor": ctx.builtin("rules/model/tools/inductor"),
            "hip/host": ctx.builtin("toolchains/hip/host"),
            "hip/common": ctx.builtin("toolchains/hip/common"),
        }
    statistics = {f"tools/{name}": ctx.builtin(f"{TOOLS}/{name}") for name in _STATISTICS}
    ctx.action(
        "",
        argv=(PYTHON, "tools/model_compiled.py", "model.py", f"out/{FACTS}", *arguments),
        inputs={
            "model.py": ctx.attrs["model"],
            **_tools(ctx, "model_compiled.py"),
            **compiler,
            **device,
            **statistics,
        },
        outputs=(FACTS,),
        mnemonic="Compile",
        toolchains=tuple(toolchains),
        limits=RUNNING,
        resources=judging_resources(ctx.platform, timed=True),
        preload=_preload(ctx),
    )


def tasks(ctx: Context) -> None:
    """Describe parts of the model as tasks; it runs where the model was profiled."""
    device, arguments = _device(ctx)
    wanted = {"parts": list(ctx.attrs["parts"]), "name": ctx.attrs["title"]}
    ctx.action(
        "",
        argv=(
            *(PYTHON, "tools/model_tasks.py", "model.py", "wanted.json", f"out/{FACTS}"),
            *arguments,
        ),
        inputs={
            "model.py": ctx.attrs["model"],
            "wanted.json": ctx.literal(wanted),
            **_tools(ctx, "model_tasks.py"),
            "tools/imported": ctx.builtin("rules/imports/tools/imported"),
            **device,
        },
        outputs=(FACTS,),
        mnemonic="Extract",
        toolchains=(ctx.toolchain(PYTHON_TOOLCHAIN),),
        limits=RUNNING,
        resources=judging_resources(ctx.platform) if device else Resources(),
        preload=_preload(ctx),
        platform=portable(ctx.platform),
    )


def likelihood(ctx: Context) -> None:
    """Compare a language model's logits with the true ones, in another process than it runs in."""
    _compare(ctx, ANSWERS, ("model_answers.py", "Answer"), ("model_likelihood.py", "Compare"))


def training(ctx: Context) -> None:
    """Compare training steps with the true ones, in another process than the model runs in."""
    _compare(ctx, STEPS, ("model_steps.py", "Train"), ("model_training.py", "Compare"))


def _compare(
    ctx: Context, written: str, answering: tuple[str, str], judging: tuple[str, str]
) -> None:
    """Run one program that records a model, and another that judges the record."""
    reference, binary = ctx.attrs["reference"], f"{written}.bin"
    program, mnemonic = answering
    answers = ctx.action(
        written,
        argv=(PYTHON, f"tools/{program}", "model.py", "reference.py", f"out/{binary}"),
        inputs={
            "model.py": ctx.attrs["model"],
            "reference.py": reference,
            **_tools(ctx, program),
        },
        outputs=(binary,),
        mnemonic=mnemonic,
        toolchains=(ctx.toolchain(PYTHON_TOOLCHAIN),),
        limits=RUNNING,
        preload=(*PRELOAD, COMPILER),
    )
    program, mnemonic = judging
    ctx.action(
        "",
        argv=(PYTHON, f"tools/{program}", "reference.py", binary, f"out/{FACTS}"),
        inputs={
            "reference.py": reference,
            binary: answers.output(binary),
            **_tools(ctx, program),
        },
        outputs=(FACTS,),
        mnemonic=mnemonic,
        toolchains=(ctx.toolchain(PYTHON_TOOLCHAIN),),
        limits=RUNNING,
        preload=(*PRELOAD, COMPILER),
    )


def _device(ctx: Context) -> tuple[Mapping[str, Artifact], tuple[str, ...]]:
    """The files that say which device the model runs on, and the argument; none on ``cpu``."""
    if ctx.platform.name == "cpu":
        return {}, ()
    files = {f"tools/{name}": ctx.builtin(f"{TOOLS}/{name}") for name in _DEVICE_FILES}
    module = f"{ctx.platform.name}_{DEVICE}"
    return {**files, **platform_file(ctx, "tools", DEVICE)}, (f"--device={module}",)


def _preload(ctx: Context) -> tuple[str, ...]:
    return (*PRELOAD, COMPILER) if ctx.platform.name == "cpu" else PRELOAD


def _tools(ctx: Context, program: str) -> dict[str, Artifact]:
    names = (program, "modelled")
    return {f"tools/{name}": ctx.builtin(f"rules/model/tools/{name}") for name in names}


_MODEL = attr.file("The file with build() and inputs(generator).", required=True)
RULES = (
    Rule(
        kind="model_profile",
        doc="Time the operators of a model.",
        implement=profile,
        attrs={"model": _MODEL},
    ),
    Rule(
        kind="model_compiled",
        doc="Time what torch.compile makes of a model.",
        implement=compiled,
        attrs={"model": _MODEL},
    ),
    Rule(
        kind="model_tasks",
        doc="Describe parts of a model as tasks.",
        implement=tasks,
        attrs={
            "model": _MODEL,
            "parts": attr.strings("The parts, by the names in the profile."),
            "title": attr.string("What the model is called."),
        },
    ),
    *(
        Rule(
            kind=kind,
            doc=doc,
            implement=implement,
            attrs={
                "model": _MODEL,
                "reference": attr.file("The oracle of the whole model.", required=True),
            },
            subtargets=(written,),
        )
        for kind, doc, implement, written in (
            (
                "model_likelihood",
                "Compare a model's logits with the true ones.",
                likelihood,
                ANSWERS,
            ),
            (
                "model_training",
                "Compare a model's training steps with the true ones.",
                training,
                STEPS,
            ),
        )
    ),
)
