"""The parts of Triton's language that kernels may use: names, attributes and syntax.

On the host a kernel is Python, so it could reach functions and objects that no kernel on a GPU can
reach. This module lists what is allowed, which is what Triton's compiler accepts.
"""

from __future__ import annotations

import ast
import enum
import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import triton.language as tl
from triton.language import core

_LANGUAGE = "triton.language"
_MODULES = (
    _LANGUAGE,
    *(f"{_LANGUAGE}.{name}" for name in ("core", "math", "random", "standard", "extra")),
    *(f"{_LANGUAGE}.extra.{name}" for name in ("libdevice", "cuda", "hip")),
    *(f"{_LANGUAGE}.extra.{name}.libdevice" for name in ("cuda", "hip")),
)
_CLASSES = ("constexpr", "tensor", "tuple", "range", "static_range", "pointer_type", "block_type")
_OF_TRITON = ("cdiv", "next_power_of_2")
DTYPES = {value.name: value for value in vars(tl).values() if type(value) is tl.dtype}
BUILTINS = {f.__name__: f for f in (len, list, range, float, int, bool, tuple, isinstance)}
REPLACED = ("min", "max", "print", "getattr", "hasattr")

_SYNTAX = (
    ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.For,
    ast.While, ast.If, ast.IfExp, ast.Assert, ast.Expr, ast.Pass, ast.BoolOp, ast.BinOp,
    ast.UnaryOp, ast.Compare, ast.Call, ast.keyword, ast.Attribute, ast.Subscript, ast.Slice,
    ast.Name, ast.Tuple, ast.List, ast.ListComp, ast.comprehension, ast.Constant, ast.JoinedStr,
    ast.FormattedValue, ast.Starred, ast.operator, ast.boolop, ast.unaryop, ast.cmpop,
    ast.expr_context,
)  # fmt: skip
_CONSTANTS = (bool, int, float, str, type(None), type(...))
_HIDDEN = {"handle", "to_ir", "base"}

_paths: dict[int, tuple[str, str]] = {}
_objects: dict[tuple[str, str], Any] = {}


@dataclass(frozen=True)
class Module:
    """A module that the kernel's own module has imported, by name."""

    name: str

    def part(self, name: str) -> Any:
        """The member of this name: a Module or an object of Triton; None if not allowed."""
        inner = f"{self.name}.{name}"
        if inner in {*_MODULES, _LANGUAGE} and (self.name == "triton" or self.name in _MODULES):
            return Module(inner)
        return object_at(self.name, name)


def names() -> list[tuple[str, str]]:
    """The modules and names that kernels may use.

    Call it before anything is replaced: it relies on how Triton marks its objects.
    """
    found = [("triton", name) for name in _OF_TRITON]
    for path in _MODULES:
        module = importlib.import_module(path)
        for name, value in vars(module).items():
            if not name.startswith("_") and _is_for_kernels(path, name, value):
                found.append((path, name))
    return found


def settle(known: list[tuple[str, str]]) -> None:
    """Remember the current values of these names."""
    _paths.clear()
    _objects.clear()
    for module, name in known:
        value = getattr(sys.modules[module], name)
        _objects[module, name] = value
        _paths.setdefault(id(value), (module, name))


def path_of(value: object) -> tuple[str, str] | None:
    """Module and name of an object that kernels may use; None for any other object."""
    return _paths.get(id(value))


def object_at(module: str, name: str) -> Any:
    """The object that kernels may use under this name; None for unknown names."""
    return _objects.get((module, name))


def unsupported(definition: ast.FunctionDef) -> Iterator[tuple[ast.AST, str]]:
    """The parts of a kernel that Triton does not compile, each with a description."""
    for node in (n for statement in definition.body for n in ast.walk(statement)):
        if not isinstance(node, _SYNTAX):
            yield node, f"the syntax '{type(node).__name__}'"
        elif isinstance(node, ast.Constant) and type(node.value) not in _CONSTANTS:
            yield node, f"a constant of type {type(node.value).__name__}"
        elif isinstance(node, ast.Attribute):
            if node.attr.startswith("_") or not isinstance(node.ctx, ast.Load):
                yield node, f"the attribute '{node.attr}'"
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield node, "an assignment to a subscript"
        elif isinstance(node, ast.keyword) and (node.arg is None or node.arg[0] == "_"):
            yield node, f"the argument '{node.arg or '**'}'"
        elif isinstance(node, ast.Name) and node.id.startswith("__"):
            yield node, f"the name '{node.id}'"


def attribute(value: Any, name: str) -> Any:
    """The value of an attribute that kernels may read. Raises AttributeError for others."""
    if type(name) is str and name in _attributes(type(value)):
        return getattr(value, name)
    what = value.__name__ if isinstance(value, type) else type(value).__name__
    raise AttributeError(f"a kernel cannot read the attribute '{name}' of a {what}")


def has_attribute(value: Any, name: str) -> bool:
    """Whether a value has an attribute, and kernels may read it."""
    return type(name) is str and name in _attributes(type(value)) and hasattr(value, name)


_known: dict[type, frozenset[str]] = {}


def _attributes(kind: type) -> frozenset[str]:
    found = _known.get(kind)
    if found is None:
        found = _known[kind] = frozenset(_public(kind) - _HIDDEN)
    return found


def _public(kind: type) -> set[str]:  # noqa: PLR0911 - one of each kind
    if issubclass(kind, tl.tensor):
        return {n for n in dir(kind) if n[0] != "_"} | {"dtype", "shape", "type", "numel"}
    if issubclass(kind, tl.dtype):
        own = {"name", "scalar", "primitive_bitwidth", "element_ty", "shape", "numel"}
        return {n for n in dir(kind) if n[0] != "_"} | own
    if issubclass(kind, core.tensor_descriptor_base):
        own = {"dtype", "shape", "strides", "block_shape", "block_type", "type"}
        return {n for n in dir(kind) if n[0] != "_"} | own
    if issubclass(kind, tl.constexpr):
        return {"value"}
    if issubclass(kind, enum.EnumMeta):
        return {"ALL", "NONE"}  # of tl.PropagateNan, the only one that kernels reach
    if kind.__name__ == "Member" and kind.__module__ == "triton_cpu.plain":
        return {"name", "value"}
    if kind.__name__ == "Fields" and issubclass(kind, tuple):
        return set(getattr(kind, "_fields", ()))
    return set()


def _is_for_kernels(path: str, name: str, value: object) -> bool:
    if type(value) in {tl.dtype, tl.constexpr} or core.is_builtin(value):
        return True
    if path == _LANGUAGE and (name in _CLASSES or name == "PropagateNan"):
        return True
    wrapped = type(value).__name__ in {"JITFunction", "InterpretedFunction"}
    is_library = path.endswith("libdevice") and getattr(value, "__module__", "") == path
    return wrapped or (is_library and callable(value))
