"""Integers in a declaration: ranges of dims, expressions of dims, conditions on dims."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from kabuild.rule import AttributeProblem

from .names import check_argument

_RANGE = re.compile(r"\s*([0-9]{1,18})\s*\.\.\s*([0-9]{1,18})\s*")
_LONGEST = 400
"""The most characters of an expression, to protect Python's parser."""

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)


def read_ranges(dims: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """The inclusive bounds of each dim in ``{rows = "1..65536"}``. Raises AttributeProblem."""
    ranges: dict[str, tuple[int, int]] = {}
    for name, text in dims.items():
        check_argument(name, "name of a dim", ("dims", name))
        match = _RANGE.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            what = f"{text!r} is not a range for dim '{name}'"
            raise AttributeProblem(what, ("dims", name), 'write "1..65536", with at most 18 digits')
        low, high = int(match[1]), int(match[2])
        if low > high:
            what = f"'{name}' has no value from {low} to {high}"
            raise AttributeProblem(what, ("dims", name), f'write "{high}..{low}"')
        ranges[name] = (low, high)
    return ranges


def check_expression(text: str, names: Iterable[str], path: tuple[str | int, ...]) -> None:
    """Refuse anything but an integer expression of ``names`` with + - * // and parentheses."""
    _check_nodes(text, _parsed(text, path), tuple(names), path, _OPERATORS)


def _parsed(text: str, path: tuple[str | int, ...]) -> ast.expr:
    if len(text) > _LONGEST:
        raise AttributeProblem(f"an expression has more than {_LONGEST} characters", path)
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = getattr(error, "msg", "") or str(error)
        raise AttributeProblem(f"'{text}' is not an expression: {why}", path) from None


def _check_nodes(
    text: str,
    tree: ast.expr,
    names: tuple[str, ...],
    path: tuple[str | int, ...],
    operators: tuple[type[ast.operator], ...],
) -> None:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if node.id not in names:
                known = ", ".join(names) or "none"
                raise AttributeProblem(
                    f"'{text}' uses unknown dim '{node.id}'", path, f"declared dims: {known}"
                )
        elif not _is_arithmetic(node, operators):
            raise AttributeProblem(
                f"'{text}' is not an integer expression", path, "use dims, integers, + - * // ( )"
            )


_COMPARISONS: Mapping[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def check_condition(text: Any, names: Iterable[str], path: tuple[str | int, ...]) -> None:
    """Refuse anything but a comparison of two expressions of ``names``, which may also use ``%``.

    Raises AttributeProblem.
    """
    hint = "write 'channels % groups == 0'"
    if not isinstance(text, str):
        raise AttributeProblem(f"{text!r} is not a condition", path, hint)
    match _parsed(text, path):
        case ast.Compare(left=left, ops=[operation], comparators=[right]) if (
            type(operation) in _COMPARISONS
        ):
            for side in (left, right):
                _check_nodes(text, side, tuple(names), path, (*_OPERATORS, ast.Mod))
        case _:
            raise AttributeProblem(f"'{text}' is not a condition", path, hint)


def holds(text: str, dims: Mapping[str, int]) -> bool:
    """Whether a checked condition holds; if it divides by zero, it does not."""
    node = ast.parse(text.strip(), mode="eval").body
    assert isinstance(node, ast.Compare), "check_condition says so"
    try:
        left, right = _value(node.left, dims), _value(node.comparators[0], dims)
    except ZeroDivisionError:
        return False
    return _COMPARISONS[type(node.ops[0])](left, right)


def value_of(text: str, dims: Mapping[str, int]) -> int:
    """The value of a checked expression. Raises ``ZeroDivisionError``."""
    return _value(ast.parse(text.strip(), mode="eval").body, dims)


def _value(node: ast.expr, dims: Mapping[str, int]) -> int:
    if isinstance(node, ast.Name):
        return dims[node.id]
    if isinstance(node, ast.Constant):
        return int(str(node.value))
    assert isinstance(node, ast.BinOp), "check_expression says so"
    left, right = _value(node.left, dims), _value(node.right, dims)
    if isinstance(node.op, ast.Add):
        return left + right
    if isinstance(node.op, ast.Sub):
        return left - right
    if isinstance(node.op, ast.Mod):
        return left % right
    return left * right if isinstance(node.op, ast.Mult) else left // right


def _is_arithmetic(node: ast.AST, operators: tuple[type[ast.operator], ...]) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, operators)
    return isinstance(node, ast.operator | ast.expr_context)
