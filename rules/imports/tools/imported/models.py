"""Benchmarks with tasks of the form ``Model``, ``get_inputs``, ``get_init_inputs``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Generator, Tensor

from imported.boundary import needing_packages, sources
from imported.constants import read_module, with_dims
from imported.modules import (
    Drawn,
    build,
    call_of,
    check_execution,
    hidden_tensor,
    numbers_like,
    run,
    settled,
    shapes_of,
    state_of,
    tensors_at,
    under_seed,
)
from imported.precision import precise
from imported.shape_space import Shapes, Space, explore
from imported.shapes_only import ShapesOnly

INPUTS, INIT = "get_inputs", "get_init_inputs"
Names = Mapping[str, Any]
Told = Mapping[str, Any]
Draw = Callable[[Told, Names], "dict[str, Tensor]"]


class Task(Protocol):
    """A module with integers that may be sizes, as ``constants.Module`` is."""

    @property
    def values(self) -> Sequence[int]:
        """The integers, as the benchmark has them."""

    @property
    def names(self) -> Sequence[str]:
        """What each of them is called."""

    @property
    def origin(self) -> str:
        """What is hashed, so that equal tasks are known."""

    def load(self, values: Sequence[int]) -> Names:
        """The module's names, with ``values`` in the place of its integers."""


def read_task(files: Sequence[Path]) -> Task:
    """The task in the first of ``files``."""
    return read_module(files[0], functions=(INPUTS, INIT), of="Model")


@dataclass(frozen=True)
class Models:
    """A benchmark of this form.

    Attributes:
        home: the directory that has ``original``, and ``parameters.json`` where tasks are judged.
        adapter, title: what the adapter and the benchmark are called.
        read: how a task is read from its files.
    """

    home: Path
    adapter: str
    title: str
    read: Callable[[Sequence[Path]], Task] = read_task

    def capture(self, name: str, files: Sequence[str]) -> dict[str, Any]:
        """The facts of a task for the lock. Raises LeftOutError."""
        task = self._task(files)
        needing_packages(lambda: task.load(task.values))
        space = explore(task.names, task.values, lambda values: _shapes(task, values))
        parts = _parts(task.load(task.values))
        paths, hidden = call_of(*parts, space).paths, hidden_tensor(parts[1])
        told = {"files": [*files], "members": _members(space), "inputs": paths}

        def drawn(dims: Mapping[str, int]) -> Drawn:
            return Drawn.of(lambda: _parts(_names(task, told, dims), "cpu"), paths)

        space = settled(space, lambda dims: check_execution(drawn(dims).call, hidden))
        space = precise(space, lambda dims: drawn(dims).excess())
        call = call_of(*parts, space)
        return {
            "origin": task.origin,
            "attrs": {
                **sources(self.adapter, files),
                "baseline": "Model",
                "parameters": told,
                "brief": "Write a class ModelNew that computes what the class Model of "
                f"{files[0]} does, from the same constructor's arguments and the same weights, "
                f"and is faster. ({self.title}, {name})",
                **call.attributes("ModelNew", space),
            },
        }

    def inputs(self, config: Told, generator: Generator) -> dict[str, Tensor]:
        """The arguments of a call, from the original's own function under a seed."""
        return self._drawn(config, generator, lambda t, n: tensors_at(n[INPUTS](), t["inputs"]))

    def state(self, config: Told, generator: Generator) -> dict[str, Tensor]:
        """The weights, from the original's own constructor under a seed."""
        return self._drawn(config, generator, lambda _, n: state_of(build(n["Model"], n[INIT]())))

    def reference(self, **given: Any) -> dict[str, Any]:
        """The original's results for arguments and weights, in their precision."""
        told = self._told()
        names = _names(self._task(told["files"]), told, given)
        with torch.device("meta"):  # the values are given, only their places are asked for
            arguments = names[INPUTS]()
        with next(given[n].device for n in told["inputs"]), numbers_like(given.values()):
            model = build(names["Model"], names[INIT]())
            return run(model, arguments, told["inputs"], {**given, **given.get("state", {})})

    def _drawn(self, config: Told, generator: Generator, draw: Draw) -> dict[str, Tensor]:
        """What the original's code draws from global generators, under a seed of the judge's."""
        told = self._told()
        task = self._task(told["files"])
        return under_seed(generator, lambda: draw(told, _names(task, told, config)))

    def _told(self) -> Told:
        told: Told = json.loads((self.home / "parameters.json").read_text())
        return told

    def _task(self, files: Sequence[str]) -> Task:
        return self.read([self.home / "original" / file for file in files])


def _members(space: Space) -> dict[str, list[int]]:
    return {name: [*members] for name, members in space.members.items()}


def _names(task: Task, told: Told, dims: Mapping[str, Any]) -> Names:
    """The names of the original for one config."""
    return task.load(with_dims(task.values, told["members"], dims))


def _parts(names: Names, device: str = "meta") -> tuple[Any, Any, Any]:
    """The constructor's arguments, the model and the arguments of a call."""
    init = names[INIT]()
    with torch.device(device), ShapesOnly():
        return init, build(names["Model"], init), names[INPUTS]()


def _shapes(task: Task, values: Sequence[int]) -> Shapes | None:
    try:
        return shapes_of(*_parts(task.load(values)))
    except Exception:  # noqa: BLE001 - whatever the benchmark's code raises for these sizes
        return None
