"""Files with a function, a line of ``#``, and calls of it, mostly with numbers written down."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from unittest import mock

import torch
from torch import Tensor

from imported.boundary import LeftOutError
from imported.devices import instead_of_cuda
from imported.functions import Values, listen, tensors
from imported.modules import first_line, identical
from imported.pytests import UNTIL

MOST_MOVED = 0.125
"""The largest part of its value by which a literal number is lowered."""


@dataclass(frozen=True)
class CalledFile:
    """A function, and the code that calls it."""

    function: Callable[..., Any]
    below: CodeType

    @classmethod
    def read(cls, path: Path) -> CalledFile:
        """The function of a file that the code below the line calls. Raises LeftOutError."""
        lines = path.read_text().splitlines(keepends=True)
        at = next((n for n, line in enumerate(lines) if line.startswith(UNTIL)), len(lines))
        above, below = "".join(lines[:at]), "\n" * at + "".join(lines[at:])
        names: dict[str, Any] = {"__name__": path.stem}
        exec(compile(above, path, "exec"), names)  # noqa: S102 - the task's own code
        called = {
            node.func.id
            for node in ast.walk(ast.parse(below))
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        found = [n.name for n in ast.parse(above).body if isinstance(n, ast.FunctionDef)]
        if not (entries := [name for name in found if name in called]):
            raise LeftOutError("NO_ENTRY", "its test calls no function of the file by name")
        return cls(names[entries[-1]], compile(below, path, "exec"))

    def first_call(self, device: str, most: float = MOST_MOVED) -> Values:
        """The arguments of the first call, under the seed of the global generator.

        Floating-point numbers are lowered by up to ``most``, with their signs kept, so that no
        solution knows them. Raises LeftOutError.
        """
        names = dict(self.function.__globals__)

        def run(function: Callable[..., Any]) -> None:
            own = ModuleType(names["__name__"])  # some import the function from the file itself
            setattr(own, self.function.__name__, function)
            with mock.patch.dict(sys.modules, {own.__name__: own}):
                exec(self.below, {**names, self.function.__name__: function})  # noqa: S102 - the task's own code

        with instead_of_cuda(device):
            heard = listen(self.function, run)
        return {name: _moved(value, most) for name, value in heard.items()}

    def check(self) -> None:
        """Raises LeftOutError if the call fails, or works for one set of values only."""
        try:
            self._run(self.first_call("cpu", 0.0))
        except LeftOutError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the benchmark's code raises
            what = f"its function fails on a CPU without gradients: {first_line(error)}"
            raise LeftOutError("DOES_NOT_RUN", what) from None
        draws = []
        for seed in (1, 2):
            torch.manual_seed(seed)
            draws.append(self.first_call("cpu"))
        one, other = map(tensors, draws)
        if all(identical(one[name], other[name]) for name in one):
            what = "its inputs are integers or zeros that its test writes down, or no tensors"
            raise LeftOutError("VALUES_FIXED", what)
        try:
            self._run(draws[0])
        except Exception:  # noqa: BLE001 - whatever the benchmark's code raises
            what = (
                "it works for the numbers that its test writes down, and not for others near them"
            )
            raise LeftOutError("VALUES_FIXED", what) from None

    def takes_any_values(self) -> bool:
        """Whether the function works for zeros, for ones, and for the other sign."""
        torch.manual_seed(1)
        drawn = self.first_call("cpu")
        for change in (torch.zeros_like, torch.ones_like, torch.neg):
            try:
                self._run({name: _changed(value, change) for name, value in drawn.items()})
            except Exception:  # noqa: BLE001 - whatever the benchmark's code raises
                return False
        return True

    def _run(self, values: Values) -> None:
        with torch.no_grad():
            self.function(**values)


def _moved(value: Any, most: float) -> Any:
    def lowered(tensor: Tensor) -> Tensor:
        draws = torch.rand(tensor.shape, device=tensor.device)
        return tensor.detach() * (1.0 - most * draws).to(tensor.dtype)

    return _changed(value, lowered)


def _changed(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same with other floating-point tensors; sizes are plain tuples."""
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, list | tuple):
        return type(value)(_changed(item, change) for item in value)
    is_changed = isinstance(value, Tensor) and value.is_floating_point()
    return change(value) if is_changed else value
