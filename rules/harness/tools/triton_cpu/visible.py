"""What a kernel may see beside its own variables: what Triton's compiler would let it see.

A kernel on the host is Python, and would reach functions and objects that no kernel on a GPU can
call. Whatever computes there is no kernel.
"""

from __future__ import annotations

import ast
import builtins
import enum
import inspect
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime import interpreter, jit

_PLAIN = (int, float, str, type(None), enum.Enum, np.generic, tl.dtype, torch.dtype)
_ABSENT: Any = object()


def foreign_name(definition: ast.FunctionDef, function: Callable[..., Any]) -> ast.AST | None:
    """The first mention in a kernel's body of what no kernel can see; None where there is none.

    ``definition`` is the parsed ``function``.
    """
    nodes = [node for statement in definition.body for node in ast.walk(statement)]
    names = [node for node in nodes if isinstance(node, ast.Name)]
    own = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    own |= {node.arg for node in ast.walk(definition.args) if isinstance(node, ast.arg)}
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if not isinstance(node, ast.Name | ast.Attribute) or id(node) in inner:
            continue
        path = list(_path(node))
        if path and path[0] not in own and not _is_visible(function, path):
            return node
    return None


def is_value(value: object) -> bool:
    """Whether kernels may have it: no function, and no object whose methods are Python's."""
    if isinstance(value, tl.constexpr):
        return is_value(value.value)
    if isinstance(value, tuple | list):
        return all(map(is_value, value))
    if isinstance(value, jit.ConstexprFunction):
        return _is_pure(value)
    is_kernel = type(value) is interpreter.InterpretedFunction
    return isinstance(value, _PLAIN) or is_kernel or _is_of_triton(value)


def _path(node: ast.AST) -> Iterator[str]:
    """``a.b.c`` as its parts; nothing of what does not begin with a name."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        before = list(_path(node.value))
        yield from [*before, node.attr] if before else []


def _is_visible(function: Callable[..., Any], path: list[str]) -> bool:
    value = _lookup(function, path[0])
    for name in path[1:]:
        if not isinstance(value, ModuleType):
            break
        if not _is_tritons(value):
            return False
        value = getattr(value, name, _ABSENT)
        if value is not _ABSENT and not isinstance(value, ModuleType):
            return True
    if value is _ABSENT or isinstance(value, ModuleType):
        return value is _ABSENT or _is_tritons(value)
    return is_value(value) or value is getattr(builtins, path[0], None)


def _lookup(function: Callable[..., Any], name: str) -> Any:
    """What a name stands for in a function's body."""
    free = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    if name in free:
        return free[name].cell_contents
    return function.__globals__.get(name, getattr(builtins, name, _ABSENT))


def _is_tritons(module: ModuleType) -> bool:
    name = module.__name__
    known = name == "triton" or name.startswith("triton.language")
    return known and sys.modules.get(name) is module


def _is_of_triton(value: object) -> bool:
    """Whether one of the language's modules holds it, under whatever name; no module itself."""
    if isinstance(value, ModuleType):
        return False
    names = [name for name in sys.modules if name.startswith("triton.language")]
    return any(value is item for name in names for item in vars(sys.modules[name]).values())


def _is_pure(function: jit.ConstexprFunction) -> bool:
    """Whether what computes a constant sees no more than kernels do."""
    try:
        lines, _ = inspect.getsourcelines(function.fn)
    except OSError:
        return False
    definition = ast.parse(inspect.cleandoc("\n" + "".join(lines))).body[0]
    if not isinstance(definition, ast.FunctionDef):
        return False
    return foreign_name(definition, function.fn) is None
