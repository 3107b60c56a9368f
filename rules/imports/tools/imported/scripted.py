"""Tasks with a script, of any form and tier: what they are, and what their references are asked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from imported import script_tasks, script_tier
from imported.constants import read_module
from imported.pytests import Tests, learn_tests
from imported.script_tier import TIER
from imported.scripts import Script

Told = Mapping[str, Any]
_STAND_IN = "//rules/imports/tools/imported/stand_in.py"


def learn_runner(home: Path, source: str, runner: str) -> tuple[dict[str, Any], str]:
    """A module and the script beside it: the declaration and its origin. Raises LeftOutError."""
    where = {"source": source, "runner": runner}
    attrs, told = script_tier.learn(script_of(home, where))
    origin = read_module(home / source, functions=(), of="").origin
    return {**attrs, "adapter": _STAND_IN, "parameters": {**told, **where}}, origin


def learn_file(home: Path, source: str, *modules: str) -> tuple[dict[str, Any], str]:
    """A file with its tests, which import ``modules``. Raises LeftOutError."""
    attrs, told, origin = learn_tests(home / source)
    where = {"source": source, "runner": source}
    parts = [*modules, *attrs["modules"]]
    return {**attrs, "modules": parts, "parameters": {**told, **where}}, origin


def script_of(home: Path, told: Told) -> Script:
    """The script that a task was learnt from; its files are below ``home``."""
    runner, source = (home / told[name] for name in ("runner", "source"))
    if "test" in told:
        return Tests(runner, source, told["test"], told["case"])
    return Script(runner, source)


def inputs(home: Path, told: Told, config: Told, device: str) -> dict[str, Tensor]:
    """The tensors of a call, under the global seed."""
    script = script_of(home, told)
    if told.get("tier") == TIER:
        return script_tier.draw(script, dict(told), device)
    return script_tasks.drawn(script, dict(told), config, device)


def reference(home: Path, told: Told, given: Told) -> dict[str, Tensor]:
    """What is expected of a call with the tensors of ``given``."""
    script = script_of(home, told)
    if told.get("tier") == TIER:
        return script_tier.original(script, dict(told), given)
    return script_tasks.expected(script, dict(told), given)


def check(home: Path, told: Told, *tensors: Mapping[str, Tensor]) -> str:
    """What the script says of a call: of its inputs, outputs, and the original's outputs."""
    return script_tier.verdict(script_of(home, told), dict(told), *tensors)
