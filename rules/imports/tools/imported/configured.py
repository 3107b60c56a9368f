"""Tasks of the form ``Model(**init)(*get_inputs(**sizes), fn=forward_fn)``.

A file has tables of their settings. One with an ``AutogradFunction`` asks for what its backward
pass calls.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from imported.backward import listen_backward
from imported.functions import (
    Learnt,
    Text,
    Told,
    Values,
    defaults,
    inputs_of,
    learn,
    listen,
    placed,
    run,
    sized,
    state_of,
    taken,
    tensors,
)
from imported.original_functions import Answer, checked_trials, results_of
from imported.shapes_only import ShapesOnly

FUNCTION = "forward_fn"
_MODEL, _INPUTS, _AUTOGRAD = "Model", "get_inputs", "AutogradFunction"
_TABLES = ("input", "init", "shared")
Settings = Mapping[str, Any]


@dataclass(frozen=True)
class _Call:
    """A function, its arguments, those that were drawn for it, and how it is called."""

    function: Callable[..., Any]
    values: Values
    drawn: Sequence[Any]
    text: Text | None = None


class Configured:
    """The task in one file: a function, a model that calls it, and what draws its inputs.

    Attributes:
        entry: what a solution defines.
    """

    def __init__(self, path: Path) -> None:
        self._names: dict[str, Any] = {"__name__": "imported_task"}
        exec(compile(path.read_text(), path, "exec"), self._names)  # noqa: S102 - the task's code
        self.entry = "backward" if _AUTOGRAD in self._names else "forward"

    def settings(self, tables: Mapping[str, Sequence[Settings]]) -> list[dict[str, Any]]:
        """The arguments of constructor and inputs: first those that are shown, then all others."""
        known = {**defaults(self._constructor), **defaults(self._names[_INPUTS])}
        for table in _TABLES:
            known.update((tables[f"single_{table}_configs"] or [{}])[0])
        choices = itertools.product(
            *(tables[f"multi_{table}_configs"] or [{}] for table in _TABLES)
        )
        return [known, *({**known, **a, **b, **c} for a, b, c in choices)]

    def learn(self, settings: Sequence[Settings]) -> Learnt:
        """What crosses the boundary. Raises LeftOutError."""
        numbers = [name for name, value in settings[0].items() if type(value) is int]
        sizes = {name: max(one[name] for one in settings) for name in numbers}
        if self._passed({**settings[0], **sizes}) != self._passed(settings[0]):
            # A mixture of settings that the benchmark never has: learn from the one it shows.
            sizes = {name: settings[0][name] for name in numbers}

        def call(moved: Mapping[str, int], device: str) -> tuple[Values, Sequence[Any]]:
            found = self._call({**settings[0], **moved}, device)
            return found.values, found.drawn

        if self.entry == "forward":
            return learn(self._names[FUNCTION], call, sizes, self.entry)
        shown = self._call(settings[0], "meta")
        return learn(shown.function, call, sizes, self.entry, text=shown.text)

    def inputs(self, told: Told, config: Settings, device: str) -> dict[str, Tensor]:
        """The tensors of a call, drawn from the global generators before all weights."""
        return inputs_of(self._call(sized(told, config), device, inputs_first=True).values, told)

    def state(self, told: Told, config: Settings, device: str) -> dict[str, Tensor]:
        """The weights, drawn by the original's constructor."""
        return state_of(self._call(sized(told, config), device).values, told)

    def reference(self, told: Told, given: Settings) -> dict[str, Tensor]:
        """The original's results for arguments and weights, in their precision."""
        call = self._call(sized(told, given), "meta")
        return run(call.function, call.values, {**given, **given.get("state", {})}, told)

    def original(self, told: Told, config: Settings, seeds: Mapping[str, int]) -> dict[str, Any]:
        """The original's draws under these seeds, and its results: inputs, state and results."""
        names, settings = self._names, sized(told, config)

        def passed() -> Values:
            model = names[_MODEL](**taken(self._constructor, settings))
            return listen(names[FUNCTION], lambda stand_in: model(*drawn, fn=stand_in))

        torch.manual_seed(seeds["inputs"])
        drawn = names[_INPUTS](**taken(names[_INPUTS], settings))
        first = tensors(passed())  # a model's buffers that calls change are inputs, too
        torch.manual_seed(seeds["state"])
        values = passed()
        named = {**tensors(values), **{name: first[name] for name in told["inputs"]}}
        found = {name: tensor.detach().clone() for name, tensor in named.items()}
        values = {name: placed(value, name, named) for name, value in values.items()}
        results = results_of(names[FUNCTION], values, told)
        parts = {part: {n: found[n] for n in told[part]} for part in ("inputs", "state")}
        return {**parts, "results": results}

    def check(self, told: Told, config: Settings, checks: tuple[Path, Path], answer: Answer) -> str:
        """What the original's check, which has its own seeds, says of a candidate.

        ``checks`` are the module with the check, and the one with what it calls.
        """
        settings = sized(told, config)
        given = taken(self._names[_INPUTS], settings), taken(self._constructor, settings)
        return checked_trials(*checks, self._names, given, answer)

    def _passed(self, settings: Settings) -> set[str] | None:
        """The tensors that are passed for some settings; None where these are refused."""
        try:
            return {*tensors(self._call(settings, "meta").values)}
        except Exception:  # noqa: BLE001 - whatever the benchmark's code raises for these sizes
            return None

    @property
    def _constructor(self) -> Callable[..., Any]:
        constructor: Callable[..., Any] = self._names[_MODEL].__init__
        return constructor

    def _call(self, settings: Settings, device: str, *, inputs_first: bool = False) -> _Call:
        names, function = self._names, self._names[FUNCTION]
        sizes = taken(names[_INPUTS], settings)
        with torch.device(device), ShapesOnly():
            drawn = [*names[_INPUTS](**sizes)] if inputs_first else None
            model = names[_MODEL](**taken(self._constructor, settings))
            drawn = drawn or [*names[_INPUTS](**sizes)]
        values = listen(function, lambda stand_in: model(*drawn, fn=stand_in))
        if _AUTOGRAD not in names:
            return _Call(function, values, drawn)
        found = listen_backward(names[_AUTOGRAD], function, values)
        return _Call(found.computed(function), found.values, found.drawn(drawn, values), found.text)
