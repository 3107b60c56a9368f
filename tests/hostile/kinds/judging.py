"""Kernels and oracles that are broken by chance, before the real compiler and the real judge."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path

from tests.cli.conftest import KERNEL, QUICK, REFERENCE, TASK
from tests.hostile.draw import Draw
from tests.hostile.ground import BASE, Ground
from tests.hostile.kinds.kind import Kind
from tests.hostile.oracle import Rules

_HOME = Path("/tmp/templates/judging")
_GATES = "--gates=compile,correctness"
_SECONDS = 240.0
_REFERENCES = (
    "raise SystemExit(0)",
    "import os; os._exit(0)",
    "import os; os._exit(3)",
    "def inputs(config, generator): return {}",
    "def inputs(config, generator): return 7\ndef reference(**_): return {}",
    "def inputs(config, generator): raise KeyboardInterrupt\ndef reference(x): return {'y': x}",
    REFERENCE.replace("2 * x", "None"),
    REFERENCE.replace("2 * x", "x[:0]"),
    REFERENCE.replace("2 * x", "x.to(int)"),
    REFERENCE.replace("2 * x", "x / 0"),
    REFERENCE.replace('{"y": 2 * x}', "[x]"),
    REFERENCE.replace('"y": 2 * x', '"z": x'),
    REFERENCE.replace('["n"]', '["m"]'),
    REFERENCE.replace('dtype=config["dtype"]', "dtype=torch.int64"),
    REFERENCE + "\nprint('::error::x', '\\x1b[2J')",
    "def f(): f()\nf()",
    "\0",
)


@cache
def _laid(ground: Ground) -> None:
    """The template: a task like those of the tests of the command line, judged once."""
    ground.lay("gates")
    shutil.rmtree(ground.root / "tasks")
    task = ground.root / "double"
    (task / "solutions/expert").mkdir(parents=True)
    (task / "BUILD.toml").write_text(TASK + QUICK)
    (task / "reference.py").write_text(REFERENCE)
    for kernel in (task / "double.hip", task / "solutions/expert/double.hip"):
        kernel.write_text(KERNEL)
    made = ground.run(ground.call("test", "//double", _GATES, seconds=_SECONDS), _rules())
    assert made.code == 0, made.text
    for strange in (ground.root / "fifo", ground.outside / "pipe", ground.outside / "device"):
        strange.unlink(missing_ok=True)
    for strange in (ground.root, ground.outside):
        for link in (path for path in strange.iterdir() if path.is_symlink()):
            link.unlink()
    shutil.copytree(BASE, _HOME, symlinks=True)


def _rules() -> Rules:
    """The compiler's and the oracle's own words are quoted."""
    return Rules(quotes=True)


def play(draw: Draw, ground: Ground) -> None:
    """A broken kernel is the candidate's failure, a broken oracle the task's, and never ours."""
    _laid(ground)
    ground.lay("judging")
    task = ground.root / "double"
    oracle = draw.chance(0.5)
    hurt = task / ("reference.py" if oracle else "solutions/expert/double.hip")
    if oracle and draw.chance(0.7):
        hurt.write_text(draw.choice(_REFERENCES))
    else:
        hurt.write_bytes(draw.damaged(hurt.read_bytes()))
    call = ground.call("test", "//double", _GATES, "--json", seconds=_SECONDS)
    ended = ground.run(call, _rules())
    try:
        said = json.loads(ended.out)["targets"]
    except ValueError:
        ground.expect(holds=ended.code in {1, 2, 36}, what="no answer", detail=ended.text)
        return
    blamed = [gate for gate in said if gate["verdict"] in {"FAIL", "REJECTED"}]
    for gate in blamed if oracle else ():
        wrong = gate["reason"] == "WRONG_RESULT"  # an oracle that says something else
        ground.expect(holds=wrong, what=f"a task's mistake is {gate['reason']}", detail=str(gate))
    if not oracle:
        failed = [gate for gate in said if gate["verdict"] == "INFRA"]
        ground.expect(holds=not failed, what="a kernel's mistake is INFRA", detail=str(failed))


KINDS = (Kind("judging", 0.06, play),)
