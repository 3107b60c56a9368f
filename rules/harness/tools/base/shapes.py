"""Shape expressions: integer arithmetic over named dims."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import cache

from base.program import Argument, Config

_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class ShapeError(ValueError):
    """A shape expression without a valid size."""


def evaluate(expression: str, dims: Mapping[str, int]) -> int:
    """The value of an expression such as ``2 * (rows + 1) // 4``.

    Raises ShapeError for other syntax, an unknown name, a division by zero or a negative
    value.
    """
    try:
        value = _value(_parse(expression), dims)
    except ZeroDivisionError as error:
        raise ShapeError(f"'{expression}' divides by zero") from error
    if value < 0:
        raise ShapeError(f"'{expression}' is {value}: a size is not negative")
    return value


def holds(condition: str, dims: Mapping[str, int]) -> bool:
    """Whether a condition such as ``channels % groups == 0`` is true of ``dims``.

    A condition that divides by zero is false. Raises ShapeError for other syntax and unknown names.
    """
    match _parse(condition):
        case ast.Compare(left=left, ops=[operation], comparators=[right]) if (
            type(operation) in _COMPARISONS
        ):
            try:
                return _COMPARISONS[type(operation)](_value(left, dims), _value(right, dims))
            except ZeroDivisionError:
                return False
        case _:
            raise ShapeError(f"'{condition}' is not a condition")


def condition_names(condition: str) -> frozenset[str]:
    """The dims that a condition reads. Raises ShapeError for anything else."""
    tree = _parse(condition)
    found = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    holds(condition, dict.fromkeys(found, 1))
    return found


def shape(argument: Argument, dims: Mapping[str, int]) -> tuple[int, ...]:
    """The sizes of a tensor's axes."""
    return tuple(evaluate(expression, dims) for expression in argument.shape)


def dtype_name(argument: Argument, config: Config) -> str:
    """The name of a tensor's dtype, with ``T`` resolved."""
    return config.dtype if argument.dtype == "T" else argument.dtype


def names(expression: str) -> frozenset[str]:
    """The dims that an expression reads. Raises ShapeError for anything else."""
    tree = _parse(expression)
    found = frozenset(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    try:
        _value(tree, dict.fromkeys(found, 1))
    except ZeroDivisionError:
        return found  # whether it divides by zero depends on the dims
    return found


@cache
def _parse(expression: str) -> ast.expr:
    try:
        return ast.parse(expression.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ShapeError(f"'{expression}' is not an expression") from error


def _value(node: ast.expr, dims: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.Name(id=name) if name in dims:
            return dims[name]
        case ast.Name(id=name):
            raise ShapeError(f"unknown dim '{name}'")
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, dims), _value(right, dims))
        case _:
            raise ShapeError(f"'{ast.unparse(node)}' is not among + - * // % and parentheses")
