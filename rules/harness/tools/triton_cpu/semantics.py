"""Helpers of rewritten kernels: Triton's rules for numbers, branches and boolean operators."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import triton.language as tl

from triton_cpu import language
from triton_cpu.plain import Member

_NUMBERS = frozenset({bool, int, float})


def helpers(semantic: Any) -> dict[str, Callable[..., Any]]:
    """The helpers of rewritten kernels, by name; ``semantic`` is as in ``rewrite.built``."""

    def assign(value: Any) -> Any:
        return semantic.to_tensor(value, False)  # noqa: FBT003 - positional in Triton

    def asked(value: Any) -> Any:
        """A number as the tensor that it is in Triton's compiler; any other value as it is."""
        return semantic.to_tensor(value) if semantic and type(value) in _NUMBERS else value

    def attribute(value: Any, name: str) -> Any:
        return language.attribute(asked(value), name)

    def has_attribute(value: Any, name: str) -> bool:
        return language.has_attribute(asked(value), name)

    def named_attribute(value: Any, name: str, *default: Any) -> Any:
        """Python's ``getattr``, limited to attributes that kernels may read."""
        if default and not has_attribute(value, name):
            return default[0]
        return attribute(value, name)

    return {
        "assign": assign,
        "and": _and,
        "or": _or,
        "not": _not,
        "truth": _truth,
        "min": _extremum(builtins.min, tl.minimum),
        "max": _extremum(builtins.max, tl.maximum),
        "print": tl.device_print,
        "tensor": asked,
        "held": lambda value: value.value if isinstance(value, Member) else value,
        "attribute": attribute,
        "getattr": named_attribute,
        "hasattr": has_attribute,
    }


def _truth(value: Any) -> bool:
    """Decide a branch. Raises TypeError for a block with several elements."""
    if not isinstance(value, tl.tensor):
        return bool(value)
    data = value.handle.data
    if data.size != 1:
        raise TypeError(f"a block of shape {list(data.shape)} cannot decide a branch")
    return bool(data.item())


def _and(left: Any, right: Callable[[], Any]) -> Any:
    if _is_block(left):
        return left.logical_and(right())
    if not _truth(left):
        return left
    return _joined(left, right(), "logical_and")


def _or(left: Any, right: Callable[[], Any]) -> Any:
    if _is_block(left):
        return left.logical_or(right())
    if _truth(left):
        return left
    return _joined(left, right(), "logical_or")


def _joined(left: Any, right: Any, method: str) -> Any:
    """Finish a boolean operation on a left scalar: elementwise if the right side is a block."""
    if _is_block(right) and isinstance(left, tl.tensor):
        return getattr(left, method)(right)
    return right


def _not(value: Any) -> Any:
    return value == 0 if _is_block(value) else not _truth(value)


def _extremum(python: Callable[..., Any], triton: Callable[..., Any]) -> Callable[..., Any]:
    def choose(*args: Any) -> Any:
        if any(isinstance(value, tl.tensor) for value in args):
            return triton(*args)
        return python(*args)

    return choose


def _is_block(value: Any) -> bool:
    return isinstance(value, tl.tensor) and value.type.is_block()
