"""One tensor of a declaration: ``T[rows, cols]``, ``f32[]``, ``T[cols]?``, ``T[k, n] * e``."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from kabuild.rule import AttributeProblem

from .expressions import check_expression
from .terms import DTYPES, ELEMENT

_TENSOR = re.compile(r"\s*(\w+)\s*\[([^\]]*)\]\s*(\?)?\s*(?:\*(.+))?", re.DOTALL)
_STRIDES = re.compile(r"\s*\[(.*)\]\s*", re.DOTALL)


@dataclass(frozen=True)
class Tensor:
    """One tensor argument.

    Attributes:
        dtype: its element type; ``T`` is the config's.
        shape: an expression for each axis; empty for a 0-dimensional tensor.
        count: the number of such tensors passed as a list; empty if it is not a list.
        optional: whether a config may pass ``None`` for it.
        layout: its strides in words or as expressions; empty if it is contiguous.
    """

    name: str
    dtype: str
    shape: tuple[str, ...]
    count: str = ""
    optional: bool = False
    layout: str = ""

    def to_json(self) -> list[Any]:
        """The form that the judge reads."""
        more = {"count": self.count, "optional": self.optional, "layout": self.layout}
        said = {name: value for name, value in more.items() if value}
        return [self.name, self.dtype, list(self.shape), *([said] if said else [])]


def read_tensor(
    name: str,
    text: Any,
    dims: tuple[str, ...],
    path: tuple[str | int, ...],
    dtypes: Collection[str] = DTYPES,
) -> Tensor:
    """The tensor declared by a text such as ``T[rows, cols]``. Raises AttributeProblem."""
    match = _TENSOR.fullmatch(text) if isinstance(text, str) else None
    if not match:
        raise AttributeProblem(
            f"{text!r} is not a tensor for '{name}'", path, 'write "T[rows, cols]" or "i64[rows]"'
        )
    dtype = match[1]
    if dtype != ELEMENT and dtype not in dtypes:
        raise AttributeProblem(
            f"unknown element type '{dtype}' of '{name}'",
            path,
            f"known: {ELEMENT} (the config's), {', '.join(dtypes)}",
        )
    shape, count = _parts(match[2]), (match[4] or "").strip()
    for part in (*shape, *([count] if count else ())):
        check_expression(part, dims, path)
    return Tensor(name, dtype, shape, count, optional=bool(match[3]))


def _parts(text: str) -> tuple[str, ...]:
    """The parts between commas; none in an empty text."""
    return tuple(part.strip() for part in text.split(",")) if text.strip() else ()


def check_layout(
    text: Any, tensor: Tensor, dims: tuple[str, ...], path: tuple[str, str], *, output: bool
) -> None:
    """Refuse invalid strides. Raises AttributeProblem."""
    words = ("any", "dense", "channels_last") if output else ("channels_last", "expanded")
    if tensor.count:
        raise AttributeProblem("a list cannot have a layout", path)
    if isinstance(text, str) and text in words:
        if text == "channels_last" and len(tensor.shape) not in {4, 5}:
            what = f"'{tensor.name}' has {len(tensor.shape)} axes"
            raise AttributeProblem(what, path, "channels_last has four or five")
        return
    strides = read_strides(text)
    if strides is None:
        known = ", ".join(f"'{word}'" for word in words)
        raise AttributeProblem(
            f"unknown layout {text!r}", path, f"write '[cols, 1]', one stride per axis, or {known}"
        )
    if len(strides) != len(tensor.shape):
        what = f"{len(strides)} strides for the {len(tensor.shape)} axes of '{tensor.name}'"
        raise AttributeProblem(what, path)
    for stride in strides:
        check_expression(stride, dims, path)


def read_strides(text: Any) -> tuple[str, ...] | None:
    """The expressions in ``[cols, 1]``; None if the text is not a list of strides."""
    match = _STRIDES.fullmatch(text) if isinstance(text, str) else None
    return _parts(match[1]) if match else None
