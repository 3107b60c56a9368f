"""Tasks with a script, or with a function: what they are, and what their references are asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from imported import original_scripts, script_tasks, script_tier
from imported.constants import read_module
from imported.functional import Functional
from imported.functions import tensors
from imported.modules import identical
from imported.original_functions import Answer
from imported.pytests import Tests, learn_tests
from imported.script_declared import floats_of, shapes_of
from imported.script_tier import TIER
from imported.scripts import Script
from imported.seeding import seed_all

Told = Mapping[str, Any]
WALKS, APART = "walks", "apart"
MANY = 1500
"""The steps of a script from which on it goes through elements one by one: the others of
AgentKernelArena's have at most 1,465 (November 2026)."""

_STAND_IN = "//rules/imports/tools/imported/stand_in.py"


def learn_function(home: Path, file: str, *beside: str) -> tuple[dict[str, Any], str]:
    """A function and the model that calls it: the declaration, its origin. Raises LeftOutError.

    ``beside`` are the module that they stand for, and the original's check, which proofs need.
    """
    attrs, origin = Functional(home, file).learn(*beside)
    return {**attrs, "check": [*beside]}, origin


def learn_runner(home: Path, source: str, runner: str) -> tuple[dict[str, Any], str]:
    """A module and the script beside it: the declaration and its origin. Raises LeftOutError."""
    where: dict[str, Any] = {"source": source, "runner": runner}
    script = Script(home / runner, home / source)
    attrs, told = script_tier.learn(script)
    if _steps(script, told) > MANY:
        where = {**where, WALKS: True, **({APART: True} if _draws_apart(script, told) else {})}
    check = [] if told.get("tier") == TIER else [runner]
    origin = read_module(home / source, functions=(), of="").origin
    more = {"adapter": _STAND_IN, "check": check, "parameters": {**told, **where}}
    return {**attrs, **more}, origin


def learn_file(home: Path, source: str, *modules: str) -> tuple[dict[str, Any], str]:
    """A file with its tests, which import ``modules``. Raises LeftOutError."""
    attrs, told, origin = learn_tests(home / source)
    where = {"source": source, "runner": source}
    parts = [*modules, *attrs["modules"]]
    return {**attrs, "modules": parts, "parameters": {**told, **where}}, origin


def task_of(home: Path, told: Told) -> Functional | Scripted:
    """The task that was learnt, as ``told`` says; its files are below ``home``."""
    return Scripted(home, told) if "runner" in told else Functional(home, told["file"])


def _steps(script: Script, told: Told) -> int:
    """How many functions of PyTorch's the script runs at its own sizes."""
    seed_all(told.get("seed", 1))
    return script.watch(script.sizes()[0], "cpu").steps


def _draws_apart(script: Script, told: Told) -> bool:
    """Whether the script makes the same call where what it expects is not computed before."""
    seed, sizes = told.get("seed", 1), script.sizes()[0]

    def shown(script: Script) -> tuple[Any, ...]:
        seed_all(seed)
        seen = script.watch(sizes, "cpu", briefly=True)
        return seen.entry, tensors(seen.values), shapes_of(seen), floats_of(seen)

    entry, values, *numbers = shown(script)
    try:
        name, others, *same = shown(replace(script, apart=True))
    except Exception:  # noqa: BLE001 - whatever the script raises for want of what it expects
        return False
    return (entry, numbers, values.keys()) == (name, same, others.keys()) and all(
        identical(values[name], others[name]) for name in values
    )


class Scripted:
    """A task that was learnt from a script; its files are below ``home``, as ``told`` says."""

    def __init__(self, home: Path, told: Told) -> None:
        runner, source = (home / told[name] for name in ("runner", "source"))
        options = {name: told.get(name, False) for name in (WALKS, APART)}
        self._script = Script(runner, source, **options)
        if "test" in told:
            self._script = Tests(runner, source, told["test"], told["case"])

    def inputs(self, told: Told, config: Told, device: str) -> dict[str, Tensor]:
        """The tensors of a call, under the global seed."""
        if told.get("tier") == TIER:
            return script_tier.draw(self._script, dict(told), device)
        return script_tasks.drawn(self._script, dict(told), config, device)

    def state(self, told: Told, config: Told, device: str) -> dict[str, Tensor]:
        """Empty: scripts have no weights."""
        del told, config, device
        return {}

    def reference(self, told: Told, given: Told) -> dict[str, Tensor]:
        """What is expected of a call with the tensors of ``given``."""
        if told.get("tier") == TIER:
            return script_tier.original(self._script, dict(told), given)
        return script_tasks.expected(self._script, dict(told), given)

    def check(self, told: Told, *tensors: Mapping[str, Tensor]) -> str:
        """What the script says of a call: of its inputs, outputs, and the original's outputs."""
        return script_tier.verdict(self._script, dict(told), *tensors)

    def original(self, told: Told, config: Told, seeds: Mapping[str, int]) -> dict[str, Any]:
        """What the script's own code draws under a seed, without expected values."""
        return original_scripts.drawn(self._script, told, config, seeds["inputs"])

    def original_check(self, told: Told, config: Told, seed: int, answer: Answer) -> str:
        """The complaint of the script's own check about a candidate; "" if it passes."""
        return original_scripts.checked(self._script, told, config, seed, answer)
