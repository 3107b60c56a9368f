"""``capture``: one task of a benchmark is run in a sandbox, to learn what it is.

``kabuild import`` declares these targets; they are not written into a BUILD.toml.
"""

from __future__ import annotations

from kabuild.rule import Artifact, Context, Limits, Rule, Source, attr

FACTS = "facts.json"
PYTHON = "${toolchain:python}/bin/python3"
CAPTURING = Limits(timeout=300.0, memory=10 << 30, processes=256)


def implement(ctx: Context) -> None:
    """Run the adapter's ``capture`` beside the original files."""
    files: tuple[Source, ...] = ctx.attrs["originals"]
    task = {"name": ctx.attrs["task"], "files": list(ctx.attrs["paths"])}
    inputs: dict[str, Artifact] = {
        "task/task.json": ctx.literal(task),
        "task/reference.py": ctx.attrs["adapter"],
        "task/library": ctx.builtin("rules/imports/tools"),
        "task/library/triton_cpu": ctx.builtin("rules/harness/tools/triton_cpu"),
        **{f"task/original/{file.path}": file for file in files},
    }
    ctx.action(
        "",
        argv=(PYTHON, "task/library/capture.py", "task/task.json", f"out/{FACTS}"),
        inputs=inputs,
        outputs=(FACTS,),
        mnemonic="Capture",
        toolchains=(ctx.toolchain("//toolchains/python"),),
        limits=CAPTURING,
        preload=("numpy", "torch", "torch._dynamo"),  # the last is what meta tensors import
    )


RULE = Rule(
    kind="capture",
    doc="Learn what one task of a benchmark is.",
    implement=implement,
    attrs={
        "task": attr.string("The task's name.", required=True),
        "adapter": attr.file("The module that reads the benchmark.", required=True),
        "originals": attr.files("The files that the task consists of."),
        "paths": attr.strings("Their paths, the main one first."),
    },
)
RULES = (RULE,)
