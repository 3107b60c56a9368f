"""The values that may enter a kernel: plain ones, written as JSON and read back as copies.

The writer of a value may be hostile; the reader creates a new value of a known type. So no
object, method or subclass of a number that the candidate defines reaches a kernel.

    null, true, 7, 0.5, "s"        themselves
    ["tuple", [..]] ["list", [..]] ["fields", [names], [..]]
    ["constexpr", value] ["dtype", "fp32"] ["torch", "float32"] ["member", name, value]
    ["kernel", number]             a function that was defined before
    ["language", module, name]     an object of Triton that kernels may use
    ["module", name]               a module, of which kernels may use only some names
    ["pointer", "*fp32", address, first byte, bytes]   a tensor: its elements, and its storage
    ["descriptor", pointer, shape, strides, block shape, padding]
    ["foreign", kind]              any other object; kernels must not name it
"""

from __future__ import annotations

import enum
import re
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import jit
from triton.tools.tensor_descriptor import TensorDescriptor

from triton_cpu import language

Term = Any  # a JSON value
_SCALARS = (bool, int, float, str, type(None))
_POINTER = re.compile(r"\*k?([iu]1|[iu](8|16|32|64)|fp(16|32|64)|bf16|fp8e\w{1,8})")
_FIELD = re.compile(r"[A-Za-z]\w{0,63}")


class NotPlainError(Exception):
    """<kind>: the type of a value that no kernel can get."""


class MalformedError(Exception):
    """A term or request that no honest candidate sends."""


@dataclass(frozen=True)
class Pointer:
    """A tensor as a kernel gets it: its address and element type, and where its storage lies."""

    kind: str
    address: int
    start: int
    size: int


@dataclass(frozen=True)
class Descriptor:
    """A tensor descriptor of plain parts."""

    base: Pointer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]
    padding: str


@dataclass(frozen=True)
class Member:
    """A copy of an ``enum.Enum``'s member: its name and plain value."""

    name: str
    value: Any


@dataclass(frozen=True)
class Foreign:
    """A value in the kernel's module that no kernel may use."""

    kind: str


def written(value: Any, number: Callable[[Any], int]) -> Term:  # noqa: C901, PLR0911 - one of each kind
    """The term for a value; ``number`` gives a kernel's number. Raises NotPlainError."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind in {tuple, torch.Size}:
        return ["tuple", [written(item, number) for item in value]]
    if kind is list:
        return ["list", [written(item, number) for item in value]]
    if kind is tl.constexpr:
        return ["constexpr", written(value.value, number)]
    if kind is tl.dtype:
        return ["dtype", value.name]
    if kind is torch.dtype:
        return ["torch", str(value).removeprefix("torch.")]
    if issubclass(kind, np.generic) and kind.__module__ == "numpy":
        return written(value.item(), number)
    if issubclass(kind, enum.Enum):
        return _member(value, number)
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return ["fields", list(kind._fields), [written(item, number) for item in value]]
    if path := language.path_of(value):
        return ["language", *path]
    if isinstance(value, (jit.KernelInterface, jit.ConstexprFunction)):
        return ["kernel", number(value)]
    raise NotPlainError(kind.__name__)


def seen(value: Any, number: Callable[[Any], int]) -> Term:
    """The term for the value of a name in a kernel's module."""
    if type(value) is ModuleType:
        return ["module", value.__name__]
    try:
        return written(value, number)
    except NotPlainError as error:
        return ["foreign", str(error)]


def passed(value: Any, number: Callable[[Any], int]) -> Term:
    """The term for a launch's argument that is not a constant. Raises NotPlainError."""
    if isinstance(value, TensorDescriptor):
        lists = [[int(n) for n in part] for part in (value.shape, value.strides, value.block_shape)]
        return ["descriptor", passed(value.base, number), *lists, str(value.padding)]
    if hasattr(value, "data_ptr"):
        tensor = value.base if isinstance(value, jit.TensorWrapper) else value
        if not isinstance(tensor, torch.Tensor):
            raise NotPlainError(type(value).__name__)
        storage = tensor.untyped_storage()
        mangled = jit.mangle_type(value)
        return ["pointer", mangled, tensor.data_ptr(), storage.data_ptr(), storage.nbytes()]
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return ["tuple", [passed(item, number) for item in value]]
    return written(value, number)


def read(term: Term, function: Callable[[int], Any]) -> Any:  # noqa: C901, PLR0911, PLR0912 - the same
    """A new value from a term; ``function`` gives a kernel by its number.

    Raises MalformedError for terms that ``written``, ``seen`` and ``passed`` do not make, or
    ValueError for field names that Python does not allow.
    """
    if type(term) in _SCALARS:
        return term
    match term:
        case ["tuple", list(items)]:
            return tuple(read(item, function) for item in items)
        case ["list", list(items)]:
            return [read(item, function) for item in items]
        case ["fields", list(names), list(items)] if len(names) == len(items):
            if not all(isinstance(name, str) and _FIELD.fullmatch(name) for name in names):
                raise MalformedError("fields")
            fields = namedtuple("Fields", names)  # type: ignore[misc]  # noqa: PYI024 - named at run time
            return fields(*(read(item, function) for item in items))
        case ["constexpr", inner]:
            return tl.constexpr(read(inner, function))
        case ["dtype", str(name)] if name in language.DTYPES:
            return language.DTYPES[name]
        case ["torch", str(name)] if isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        case ["member", str(name), value]:
            return Member(name, read(value, function))
        case ["kernel", int(number)]:
            return function(number)
        case ["language", str(module), str(name)]:
            return _found(module, name)
        case ["module", str(name)]:
            return language.Module(name)
        case ["foreign", str(kind)]:
            return Foreign(kind)
        case ["pointer", str(kind), int(address), int(start), int(size)]:
            if not _POINTER.fullmatch(kind) or not 0 <= address < 1 << 64:
                raise MalformedError(kind)
            return Pointer(kind, address, start, size)
        case ["descriptor", base, list(shape), list(strides), list(block), str(padding)]:
            return _descriptor(read(base, function), (shape, strides, block), padding)
    raise MalformedError(repr(term)[:80])


def _member(value: enum.Enum, number: Callable[[Any], int]) -> Term:
    """The term for a member: its value if it is itself a number or string, else name and value."""
    # Read from Enum's own storage, since the candidate may have replaced the properties.
    name, held = value.__dict__.get("_name_"), value.__dict__.get("_value_")
    if type(held) not in _SCALARS or type(name) is not str:
        raise NotPlainError(type(value).__name__)
    return held if isinstance(value, int | str | float) else ["member", name, written(held, number)]


def _found(module: str, name: str) -> Any:
    found = language.object_at(module, name)
    if found is None:
        raise MalformedError(f"{module}.{name}")
    return found


def _descriptor(base: Any, parts: tuple[list[Any], ...], padding: str) -> Descriptor:
    if not isinstance(base, Pointer) or any(type(n) is not int for part in parts for n in part):
        raise MalformedError("descriptor")
    shape, strides, block = (tuple(part) for part in parts)
    return Descriptor(base, shape, strides, block, padding)
