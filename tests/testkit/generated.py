"""Workspaces of any size, whose gates are instant: for what a build costs by itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

RULE = '''"""Five gates in a row, like a benchmark's, each a copy."""

from __future__ import annotations

from kabuild.rule import VERDICT_FILE, GatesInfo, Resources, Rule, Source, attr

GATES = ("compile", "correctness", "perf", "unseen", "score")


def implement(ctx):
    """Each gate takes the one before it, and says PASS."""
    before, gates = None, []
    for number, gate in enumerate(GATES):
        verdict = {
            "schema": 1, "gate": gate, "verdict": "PASS", "reason": "", "summary": "fine",
            "detail": "", "speedup": 2.0, "score": 320.0,
        }
        inputs = {"verdict.json": ctx.literal(verdict), "shared": Source("rules/copied/data")}
        if number == 0:
            inputs |= {"kernel": ctx.attrs["kernel"], "reference": ctx.attrs["reference"]}
        else:
            inputs["before"] = before.output("made")
        before = ctx.gate(
            gate,
            argv=("/bin/sh", "-c", "cp verdict.json out/; cat kernel before >out/made 2>/dev/null; :"),
            inputs=inputs,
            outputs=("made",),
            mnemonic=gate.capitalize(),
            requires=tuple(gates[-1:]),
            resources=Resources(cpus=1),
        )
        gates.append(before)
    ctx.provide(GatesInfo(tuple(gates)))


RULE = Rule(
    kind="copied",
    doc="A task whose gates copy.",
    implement=implement,
    attrs={
        "kernel": attr.file("What is judged."),
        "reference": attr.file("What it is compared with."),
    },
    subtargets=GATES,
    gates=GATES,
)
'''  # noqa: E501
AGENTS = '[[agent]]\nname = "expert"\nreplays = "expert"\n'
WORKSPACE = 'name = "generated"\n'


def generate(root: Path, tasks: int, *, shared: int = 40, age: float = 3600.0) -> None:
    """``tasks`` tasks of five gates in families of a hundred; all files are ``age`` s old."""
    rules = root / "rules" / "copied"
    _write(root / "WORKSPACE.toml", WORKSPACE)
    _write(rules / "rule.py", RULE)
    for number in range(shared):
        _write(rules / "data" / f"part{number}.txt", f"{number}\n" * 50)
    for task in range(tasks):
        generate_task(root, task)
    make_old(root.rglob("*"), age)
    make_old([root], age)


def generate_task(root: Path, task: int) -> Path:
    """One task package; its directory."""
    package = root / "tasks" / f"family{task // 100}" / f"t{task}"
    _write(
        package / "BUILD.toml",
        f'[[copied]]\nname = "t{task}"\nkernel = "kernel.hip"\nreference = "reference.py"\n',
    )
    _write(package / "kernel.hip", f"// kernel {task}\n")
    _write(package / "reference.py", f"# reference {task}\n")
    return package


def make_old(paths: Iterable[Path], age: float) -> None:
    """Date files back. Their ctime cannot be: it is as young as this call."""
    import time

    then = time.time() - age
    for path in paths:
        os.utime(path, (then, then))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
