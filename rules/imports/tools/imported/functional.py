"""Tasks of the form ``Model(*init)(*inputs, fn=function)``, with several cases of inputs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from imported.boundary import LeftOutError
from imported.constants import Module, read_module
from imported.functions import Values, inputs_of, learn, listen, run, sized, state_of
from imported.modules import build
from imported.original_functions import Answer
from imported.original_pairs import Pair

_INPUTS, _INIT = "get_inputs", "get_init_inputs"
Told = Mapping[str, Any]
Sizes = Mapping[str, int]


class Functional:
    """The task in one file: a function, and a model that calls it with its weights."""

    def __init__(self, home: Path, file: str) -> None:
        self._home, self._file = home, file
        self._module: Module = _read(home / file)

    def learn(self, *beside: str) -> tuple[dict[str, Any], str]:
        """What a declaration says, with its files as parameters, and the task's origin.

        ``beside`` are the module that its functional form stands for, and the original's check.
        Raises LeftOutError.
        """
        names = self._module.load(self._module.values)
        if _model(names) is None:
            raise LeftOutError("NO_ENTRY", "it has no model that is called with a function 'fn'")
        function = _function(names)
        learnt = learn(function, self._call, self._sizes(), function.__name__, keywords=True)
        parameters = learnt.parameters(self._sizes(), file=self._file, beside=[*beside])
        return {**learnt.attrs, "parameters": parameters}, self._module.origin

    def inputs(self, told: Told, config: Told, device: str) -> dict[str, Tensor]:
        """The tensors of a call, drawn from the global generators."""
        return inputs_of(self._call(sized(told, config), device)[0], dict(told))

    def state(self, told: Told, config: Told, device: str) -> dict[str, Tensor]:
        """The weights, drawn by the original's constructor."""
        return state_of(self._call(sized(told, config), device)[0], dict(told))

    def reference(self, told: Told, given: Mapping[str, Any]) -> dict[str, Tensor]:
        """The original's results for arguments and weights, in their precision."""
        call = self._call(sized(told, given), "meta")[0]
        function = _function(self._module.load(self._module.values))
        return run(function, call, {**given, **given.get("state", {})}, dict(told))

    def original(self, told: Told, config: Told, seeds: Mapping[str, int]) -> dict[str, Any]:
        """What the original draws under these seeds, and its module computes."""
        pair, function = self._pair(told, config)
        return pair.original(function, told, seeds)

    def original_check(self, told: Told, config: Told, seed: int, answer: Answer) -> str:
        """The complaint of the original's own check about a candidate; "" if it passes."""
        pair, function = self._pair(told, config)
        return pair.checked(function, seed, answer)

    def _pair(self, told: Told, config: Told) -> tuple[Pair, Callable[..., Any]]:
        """The original's pair of files with the sizes of a config, and the function."""
        module, check = (self._home / file for file in told["beside"])
        sizes = [*{**self._sizes(), **sized(told, config)}.values()][: len(self._sizes())]
        other = _read(module)
        if (other.names, other.values) != (self._module.names, self._module.values):
            raise LookupError("the module has other sizes than its functional form")
        names = self._module.load(sizes)
        kind = _model(names)
        assert kind is not None
        return Pair(other.load(sizes), names, kind.__name__, check), _function(names)

    def _sizes(self) -> dict[str, int]:
        named = enumerate(zip(self._module.names, self._module.values, strict=True))
        return {f"{name}_{index}": value for index, (name, value) in named}

    def _call(self, moved: Sizes, device: str) -> tuple[Values, list[Any]]:
        """The arguments of the call that the model makes, and those that were drawn for it.

        They are those of the last case, which is the largest one.
        """
        sizes = {**self._sizes(), **moved}
        names = self._module.load([sizes[name] for name in self._sizes()])
        kind = _model(names)
        assert kind is not None
        with torch.device(device):
            model = build(kind, names[_INIT]()).eval()  # as the benchmark has it
            *_, drawn = _cases(names[_INPUTS]())
        return listen(_function(names), lambda function: model(*drawn, fn=function)), list(drawn)


def _read(path: Path) -> Module:
    return read_module(path, functions=(_INPUTS, _INIT), of="")


def _model(names: Mapping[str, Any]) -> type[nn.Module] | None:
    """The last class of a module whose ``forward`` takes a function."""
    found = [
        value
        for value in names.values()
        if isinstance(value, type) and issubclass(value, nn.Module) and callable(_default(value))
    ]
    return found[-1] if found else None


def _function(names: Mapping[str, Any]) -> Callable[..., Any]:
    """What the model is called with, unless it is given another one."""
    function: Callable[..., Any] = _default(_model(names))
    return function


def _default(kind: Any) -> Any:
    parameter = inspect.signature(kind.forward).parameters.get("fn")
    return parameter.default if parameter is not None else None


def _cases(drawn: Any) -> list[Any]:
    """All cases of inputs: of a generator, or the one of a list."""
    return [drawn] if isinstance(drawn, list | tuple) else [*drawn]
