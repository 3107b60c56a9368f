"""Workspaces of any size, whose gates are instant: for what a build costs by itself."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

RULE = '''"""Five gates in a row, like a benchmark's: a kernel that says "bad" fails them."""

from __future__ import annotations

from kabuild.rule import Gate, Role, Rule, Source, attr

GATES = (
    Gate("compile", share="compiled", watched=True),
    Gate("correctness", share="correct", watched=True),
    Gate("perf", role=Role.TIMES, watched=True),
    Gate("unseen", share="unseen"),
    Gate("score", role=Role.SCORE),
)
JUDGE = "cat kernel reference before >out/made 2>/dev/null; v=pass; grep -q bad out/made && v=fail;"


def implement(ctx):
    """Each gate takes the one before it."""
    gates = []
    for number, gate in enumerate(gate.name for gate in GATES):
        said = {"schema": 1, "gate": gate, "summary": "", "detail": "", "score": 320.0}
        speedup = {"speedup": 2.0, "speedup_low": 1.9, "speedup_high": 2.2}
        inputs = {
            "pass": ctx.literal({**said, "verdict": "PASS", "reason": "", **speedup}),
            "fail": ctx.literal({**said, "verdict": "FAIL", "reason": "WRONG_RESULT"}),
            "shared": Source("rules/copied/data"),
        }
        if number == 0:
            inputs |= {"kernel": ctx.attrs["kernel"], "reference": ctx.attrs["reference"]}
        else:
            inputs["before"] = gates[-1].output("made")
        made = ctx.gate(
            gate,
            argv=("/bin/sh", "-c", JUDGE + " cp $v out/verdict.json"),
            inputs=inputs,
            outputs=("made",),
            mnemonic=gate.capitalize(),
            requires=tuple(gates[-1:]),
        )
        gates.append(made)


RULE = Rule(
    kind="copied",
    doc="A task whose gates copy.",
    implement=implement,
    attrs={
        "kernel": attr.file("What is judged."),
        "reference": attr.file("What it is compared with."),
    },
    gates=GATES,
)
'''
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
