"""Describes in a declaration what a benchmark and a candidate pass to each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

DTYPES = {
    torch.float32: "T",
    torch.float64: "f64",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.bool: "bool",
    torch.float8_e4m3fn: "f8e4m3",
    torch.float8_e5m2: "f8e5m2",
    torch.float8_e4m3fnuz: "f8e4m3fnuz",
    torch.float8_e5m2fnuz: "f8e5m2fnuz",
}


class LeftOutError(Exception):
    """A task that cannot be imported: ``reason`` is a class of such tasks."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(f"{reason}: {why}")
        self.reason = reason
        self.why = why


class Named(dict[str, torch.Tensor]):
    """Named results, in the order in which a call returns them."""


@dataclass
class Arguments:
    """The arguments of a call as Python text, with the tensors and numbers in them by name.

    Attributes:
        tensors: by name, in the order of the call.
        scalars: floats by name.
        integers: the text for each integer in order: a literal, or a dim's name.
    """

    integers: Iterator[str] = field(default_factory=lambda: iter(()))
    tensors: dict[str, torch.Tensor] = field(default_factory=dict)
    scalars: dict[str, float] = field(default_factory=dict)

    def text(self, value: Any, name: str) -> str:  # noqa: PLR0911 - one for each type
        """``value`` as an expression, under ``name``. Raises LeftOutError."""
        if isinstance(value, torch.Tensor):
            self.tensors[name] = value
            return name
        if isinstance(value, bool | str | None):
            return repr(value)
        if isinstance(value, int):
            return self._integer(value)
        if isinstance(value, float):
            self.scalars[name] = value
            return name
        if isinstance(value, torch.dtype) and value in DTYPES:
            return DTYPES[value]
        if type(value) in {list, tuple}:
            parts = [self.text(item, f"{name}_{index}") for index, item in enumerate(value)]
            if isinstance(value, list):
                return f"[{', '.join(parts)}]"
            return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
        if isinstance(value, dict):
            pairs = (f"{k!r}: {self.text(v, below(name, k))}" for k, v in value.items())
            return f"{{{', '.join(pairs)}}}"
        if type(value).__module__ == "triton.language.core" and hasattr(
            value, "primitive_bitwidth"
        ):
            return f"triton_type({value.name!r})"
        kind = type(value).__name__
        raise LeftOutError("FOREIGN_OBJECT", f"an argument is an object of type '{kind}'")

    def _integer(self, value: int) -> str:
        text = next(self.integers, repr(value))
        if not text.isidentifier() and text != repr(value):
            what = f"an argument is {text}, which is neither a dim nor constant"
            raise LeftOutError("ARGUMENT_NOT_A_DIM", what)
        return text


def below(name: str, key: Any) -> str:
    """The name of a value in a container."""
    return re.sub(r"\W", "_", f"{name}_{key}")


def integers_of(value: Any) -> Iterator[int]:
    """The integers in a value, in the order in which ``Arguments`` meets them."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from integers_of(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from integers_of(item)


def returned(value: Any, name: str = "y") -> tuple[str, dict[str, torch.Tensor]]:
    """The targets of a call that returned ``value``, and the tensors by their names.

    Raises LeftOutError.
    """
    if isinstance(value, torch.Tensor):
        return name, {name: value}
    if isinstance(value, Named):
        return ", ".join(value), value
    if not isinstance(value, list | tuple) or not value:
        kind = type(value).__name__
        raise LeftOutError("RESULT_NOT_TENSORS", f"the result is of type '{kind}'")
    parts, tensors = [], {}
    for index, item in enumerate(value):
        part, found = returned(item, f"{name}{index}")
        parts.append(part if isinstance(item, torch.Tensor) else f"({part})")
        tensors.update(found)
    return ", ".join(parts) + "," * (len(parts) == 1), tensors


def dtype_of(tensor: torch.Tensor) -> str:
    """The element type as declarations call it. Raises LeftOutError."""
    if tensor.dtype not in DTYPES:
        raise LeftOutError("ELEMENT_TYPE", f"a tensor is of type {tensor.dtype}")
    return DTYPES[tensor.dtype]


def declared(tensor: torch.Tensor, shape: list[str]) -> str:
    """A tensor as a declaration has it: ``T[rows, cols]``."""
    return f"{dtype_of(tensor)}[{', '.join(shape)}]"


def flat(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of a result, in order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from flat(item)


def sources(adapter: str, files: Sequence[str]) -> dict[str, Any]:
    """The declared origin of an adapter's task; the first file is the kernel."""
    return {
        "kernel": files[0],
        "reference": f"//rules/imports/adapters/{adapter}.py",
        "library": "//rules/imports/tools",
        "originals": list(files),
    }


def needing_packages(run: Callable[[], Any]) -> Any:
    """The result of ``run``; a missing package leaves the task out. Raises LeftOutError."""
    try:
        return run()
    except ModuleNotFoundError as error:
        what = f"it imports '{error.name}', which the pinned Python does not have"
        raise LeftOutError("NEEDS_PACKAGE", what) from None
