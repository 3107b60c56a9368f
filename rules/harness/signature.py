"""The arguments of a kernel, as a task declares them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kabuild.rule import AttributeProblem

DTYPES = ("f64", "f32", "f16", "bf16", "i64", "i32", "i8", "u8", "bool")
ELEMENT = "T"
_TENSOR = re.compile(r"\s*(\w+)\s*\[(.*)\]\s*", re.DOTALL)
_RANGE = re.compile(r"\s*(\d+)\s*\.\.\s*(\d+)\s*")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)


@dataclass(frozen=True)
class Tensor:
    """One tensor argument: element type (``T`` is the config's) and shape expressions."""

    name: str
    dtype: str
    shape: tuple[str, ...]

    def to_json(self) -> list[Any]:
        """As the judge reads it."""
        return [self.name, self.dtype, list(self.shape)]


@dataclass(frozen=True)
class Signature:
    """What an entry takes: inputs, outputs, scalars with their defaults, dims, in order."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    scalars: tuple[tuple[str, float | int], ...]
    dims: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """As the judge reads it."""
        return {
            "inputs": [tensor.to_json() for tensor in self.inputs],
            "outputs": [tensor.to_json() for tensor in self.outputs],
            "scalars": [list(scalar) for scalar in self.scalars],
            "dims": list(self.dims),
        }


def read_signature(attrs: Mapping[str, Any]) -> Signature:
    """The signature in a task's attributes. Raises AttributeProblem, path from the task."""
    dims = tuple(read_ranges(attrs["dims"]))
    inputs = _read_tensors("inputs", attrs["inputs"], dims)
    outputs = _read_tensors("outputs", attrs["outputs"], dims)
    scalars = tuple(_read_scalar(name, value) for name, value in attrs["scalars"].items())
    _refuse_clashes(
        (("inputs", attrs["inputs"]), ("outputs", attrs["outputs"])),
        (("scalars", attrs["scalars"]), ("dims", attrs["dims"])),
    )
    return Signature(inputs, outputs, scalars, dims)


def read_ranges(dims: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """The bounds, both inclusive, of each dim in ``{rows = "1..65536"}``."""
    ranges: dict[str, tuple[int, int]] = {}
    for name, text in dims.items():
        if not _IDENTIFIER.fullmatch(name):
            raise AttributeProblem(f"'{name}' is no name of a dim", ("dims", name))
        match = _RANGE.fullmatch(text) if isinstance(text, str) else None
        low, high = (int(match[1]), int(match[2])) if match else (1, 0)
        if low > high:
            raise AttributeProblem(
                f"{text!r} is no range for dim '{name}'", ("dims", name), 'write "1..65536"'
            )
        ranges[name] = (low, high)
    return ranges


def check_expression(text: str, names: Iterable[str], path: tuple[str | int, ...]) -> None:
    """Refuse what is no integer expression of ``names`` with + - * // and parentheses."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise AttributeProblem(f"'{text}' is no expression: {error.msg}", path) from None
    for node in ast.walk(tree.body):
        if isinstance(node, ast.Name):
            if node.id not in names:
                known = ", ".join(names) or "none"
                raise AttributeProblem(
                    f"'{text}' uses unknown dim '{node.id}'", path, f"declared dims: {known}"
                )
        elif not _is_arithmetic(node):
            raise AttributeProblem(
                f"'{text}' is no integer expression", path, "use dims, integers, + - * // ( )"
            )


def _is_arithmetic(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, _OPERATORS)
    return isinstance(node, ast.operator | ast.expr_context)


def _read_tensors(
    attribute: str, declared: Mapping[str, Any], dims: tuple[str, ...]
) -> tuple[Tensor, ...]:
    if not declared:
        raise AttributeProblem(f"'{attribute}' is empty: a kernel needs some", (attribute,))
    return tuple(_read_tensor(attribute, name, text, dims) for name, text in declared.items())


def _read_tensor(attribute: str, name: str, text: Any, dims: tuple[str, ...]) -> Tensor:
    path = (attribute, name)
    match = _TENSOR.fullmatch(text) if isinstance(text, str) else None
    if not match or not _IDENTIFIER.fullmatch(name):
        raise AttributeProblem(
            f"{text!r} is no tensor for '{name}'", path, 'write "T[rows, cols]" or "i64[rows]"'
        )
    dtype = match[1]
    if dtype != ELEMENT and dtype not in DTYPES:
        raise AttributeProblem(
            f"unknown element type '{dtype}' of '{name}'",
            path,
            f"known: {ELEMENT} (the config's), {', '.join(DTYPES)}",
        )
    shape = tuple(part.strip() for part in match[2].split(","))
    for part in shape:
        check_expression(part, dims, path)
    return Tensor(name, dtype, shape)


def _read_scalar(name: str, value: Any) -> tuple[str, float | int]:
    if not _IDENTIFIER.fullmatch(name) or isinstance(value, bool):
        raise AttributeProblem(f"'{name}' = {value!r} is no scalar", ("scalars", name))
    if not isinstance(value, int | float):
        raise AttributeProblem(
            f"scalar '{name}' has no number as its default: {value!r}",
            ("scalars", name),
            "write scalars = { eps = 1e-5 }",
        )
    return (name, value)


def _refuse_clashes(*groups: tuple[tuple[str, Mapping[str, Any]], ...]) -> None:
    """One name is one argument."""
    seen: dict[str, str] = {}
    for attribute, declared in (pair for group in groups for pair in group):
        for name in declared:
            if name in seen:
                raise AttributeProblem(
                    f"'{name}' is declared twice: in '{seen[name]}' and in '{attribute}'",
                    (attribute, name),
                )
            seen[name] = attribute
