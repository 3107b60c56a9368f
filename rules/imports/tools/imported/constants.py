"""The integers of a module that may be sizes, and the same module with other integers."""

from __future__ import annotations

import ast
import functools
import symtable
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

LEAST = 8
"""Smaller integers are axes, strides, kernel sizes and numbers of layers."""

_TABLE = "_kabuild_constants"


@dataclass(frozen=True)
class Module:
    """A module whose integers are looked up in a table.

    Attributes:
        values: the integers, as in the text.
        names: the name of each: that of its variable, or of its function.
        origin: digest material: the syntax of ``of`` without docstrings and positions.
        source: the module's text.
        places: line, first and last byte of each of the integers in it.
    """

    code: CodeType
    values: tuple[int, ...]
    names: tuple[str, ...]
    origin: str
    source: str = ""
    places: tuple[tuple[int, int, int], ...] = ()

    def written(self, values: Sequence[int]) -> str:
        """The module's own text, with its integers replaced by ``values``."""
        lines = self.source.encode().splitlines(keepends=True)
        for (line, begin, end), value in sorted(zip(self.places, values, strict=True))[::-1]:
            text = lines[line - 1]
            lines[line - 1] = text[:begin] + str(value).encode() + text[end:]
        return b"".join(lines).decode()

    def load(self, values: Sequence[int]) -> dict[str, Any]:
        """The module's names, with its integers replaced by ``values``."""
        names: dict[str, Any] = {"__name__": "imported_task", _TABLE: tuple(values)}
        exec(self.code, names)  # noqa: S102 - the task's own code is what is looked at
        return names


def read_module(path: Path, *, functions: Sequence[str], of: str) -> Module:
    """The module at ``path``: integers of its assignments, and of ``functions``.

    ``of`` names the class that defines the computation. Integers that the rest of the module reads
    by name are not sizes: a solution, which is a separate module, has them unchanged.
    """
    return _parsed(path.read_text(), path.name, tuple(functions), of)


@functools.cache
def _parsed(source: str, name: str, functions: tuple[str, ...], of: str) -> Module:
    """As ``read_module``; each call of a task reads its text, so it is parsed only once."""
    tree = ast.parse(source)
    origin = next((n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == of), tree)
    text = ast.dump(without_docstrings(origin))
    finder = _Finder(functions, _read_elsewhere(source, tree, functions))
    tree.body = [finder.statement(node) for node in tree.body]
    code = compile(ast.fix_missing_locations(tree), name, "exec")
    values, names = tuple(finder.values), tuple(finder.names)
    return Module(code, values, names, text, source, tuple(finder.places))


class _Finder(ast.NodeTransformer):
    def __init__(self, functions: Sequence[str], fixed: AbstractSet[str]) -> None:
        self.values: list[int] = []
        self.names: list[str] = []
        self.places: list[tuple[int, int, int]] = []
        self._functions = functions
        self._fixed = fixed
        self._name = ""

    def statement(self, node: ast.stmt) -> ast.stmt:
        """A statement of the module, changed where it may hold sizes."""
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            self._name = node.targets[0].id
            if self._name in self._fixed:
                return node
        elif isinstance(node, ast.FunctionDef) and node.name in self._functions:
            self._name = node.name.removeprefix("get_")
        else:
            return node
        changed: ast.stmt = self.generic_visit(node)  # type: ignore[assignment]
        return changed

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """A lookup that replaces an integer."""
        if type(node.value) is not int or node.value < LEAST:
            return node
        self.values.append(node.value)
        self.names.append(self._name)
        self.places.append((node.lineno, node.col_offset, node.end_col_offset or 0))
        table, index = ast.Name(_TABLE, ast.Load()), ast.Constant(len(self.values) - 1)
        return ast.copy_location(ast.Subscript(table, index, ast.Load()), node)


def _read_elsewhere(source: str, tree: ast.Module, functions: Sequence[str]) -> set[str]:
    """The names that classes and other functions read, and those that these are made of."""
    found = set(_globals(symtable.symtable(source, "module", "exec"), functions))
    assigned = [
        ({n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)},
         {n.id for n in ast.walk(node.value) if isinstance(n, ast.Name)})
        for node in tree.body
        if isinstance(node, ast.Assign)
    ]  # fmt: skip
    for targets, read in reversed(assigned):
        if targets & found:
            found |= read
    return found


def _globals(table: symtable.SymbolTable, functions: Sequence[str]) -> Iterator[str]:
    """The names of the module that the scopes below ``table`` read."""
    for child in table.get_children():
        if child.get_name() not in functions:
            yield from (s.get_name() for s in child.get_symbols() if s.is_global())
            yield from _globals(child, ())


def without_docstrings(tree: ast.AST) -> ast.AST:
    """The same syntax without docstrings and positions."""
    tree = ast.parse(ast.unparse(tree))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            assert isinstance(body, list)
            node.body = body[1:] or [ast.Pass()]
    return tree


def with_dims(
    values: Sequence[int], members: Mapping[str, Sequence[int]], dims: Mapping[str, int]
) -> list[int]:
    """The integers of a module for one config: ``members`` has the indices that are each dim."""
    found = list(values)
    for name, indices in members.items():
        for index in indices:
            found[index] = int(dims[name])
    return found
