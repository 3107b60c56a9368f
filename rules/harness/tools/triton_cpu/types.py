"""Faster block types for Triton: properties of a type are computed once per type.

Under the interpreter every operation of every program creates new tensors. Half of that time went
into deriving shapes and sibling types that never change.
"""

from __future__ import annotations

import math
from typing import Any

import triton.language as tl
from triton.language.semantic import TritonSemantic

_NO_SHAPE = tl.tuple([])
_ONE = tl.constexpr(1)
_upstream_broadcast = TritonSemantic.broadcast_impl_value
_UNNAMED = ("fp8e4b8", "fp8e5b16")
"""Element types that Triton's interpreter has no name for."""


def install() -> None:
    """Replace the constructor of tensors and the derivations of block types."""
    tl.tensor.__init__ = _make_tensor
    tl.block_type.to_ir = _host_type
    upstream = tl.dtype.to_ir
    tl.dtype.to_ir = lambda kind, builder: (
        kind if kind.name in _UNNAMED else upstream(kind, builder)
    )
    tl.block_type.with_element_ty = _with_element_type
    tl.block_type.__eq__ = _equal
    tl.block_type.__hash__ = lambda kind: hash(kind.name)
    TritonSemantic.broadcast_impl_value = _broadcast


def _make_tensor(self: Any, handle: Any, type: Any) -> None:  # noqa: A002 - Triton's name
    self.handle = handle
    self.type = type
    self.dtype = type.scalar
    self.shape, self.numel = _dimensions(type) if type.is_block() else (_NO_SHAPE, _ONE)


def _dimensions(kind: Any) -> tuple[Any, Any]:
    """Give a block type's shape and element count as the constants that tensors have."""
    found: tuple[Any, Any] | None = kind.__dict__.get("host_dimensions")
    if found is None:
        sizes = [tl.constexpr(size) for size in kind.shape]
        found = (tl.tuple(sizes), tl.constexpr(math.prod(size.value for size in sizes)))
        kind.host_dimensions = found
    return found


def _host_type(self: Any, builder: Any) -> Any:
    """Check the element type and return the type: the interpreter's types are Triton's own."""
    self.element_ty.to_ir(builder)
    return self


def _with_element_type(self: Any, scalar: Any) -> Any:
    siblings = self.__dict__.setdefault("host_siblings", {})
    found = siblings.get(scalar.name)
    if found is None:
        found = siblings.setdefault(scalar.name, tl.block_type(scalar, self.shape))
    return found


def _equal(self: Any, other: Any) -> bool:
    return self is other or (isinstance(other, tl.block_type) and self.name == other.name)


def _broadcast(self: Any, lhs: Any, rhs: Any) -> Any:
    """Leave operands of equal shapes as they are; most operations have those."""
    if lhs.type.is_block():
        same = rhs.type.is_block() and lhs.type.shape.values == rhs.type.shape.values
    else:
        same = not rhs.type.is_block()
    return (lhs, rhs) if same else _upstream_broadcast(self, lhs, rhs)
