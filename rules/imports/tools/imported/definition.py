"""A kernel's definition as JSON: axes, tensors and a reference, with workloads that set sizes.

This is the FlashInfer Trace schema, which SOL-ExecBench has extended.
"""

from __future__ import annotations

import ast
import json
import linecache
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from imported.boundary import LeftOutError, Named, needing_packages
from imported.doubles import InDoubles

RUN = "run"
"""The function of a reference, and of a solution."""

SOURCES = ("random", "scalar", "custom", "safetensors")
"""Where a workload may take an input from."""

_AXES = ("const", "var", "expr")
_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_KINDS = {dict: "a table", list: "a list", str: "a text", int: "an integer"}
Table = dict[str, Any]


@dataclass(frozen=True)
class Argument:
    """An input or output: ``shape`` has names of axes, and is None for a number."""

    shape: tuple[str, ...] | None
    dtype: torch.dtype
    description: str


@dataclass(frozen=True)
class Workload:
    """One way to call a kernel.

    Attributes:
        axes: the sizes of the variable axes.
        sources: of each input, where it comes from.
        numbers: the inputs that are given numbers.
        tolerance: what the workload changes of the benchmark's own.
    """

    axes: Mapping[str, int]
    sources: Mapping[str, str]
    numbers: Mapping[str, float]
    tolerance: Mapping[str, Any]


@dataclass(frozen=True)
class Definition:
    """One kernel.

    Attributes:
        constant: axes that have one size.
        variable: axes whose sizes a workload sets.
        derived: axes that are expressions of others.
        constraints: what holds of axes.
        reference: the text of a module with the function ``run``.
        custom: the function of it that makes inputs; empty for none.
    """

    file: str
    op_type: str
    description: str
    constant: Mapping[str, int]
    variable: tuple[str, ...]
    derived: Mapping[str, str]
    constraints: tuple[str, ...]
    inputs: Mapping[str, Argument]
    outputs: Mapping[str, Argument]
    reference: str
    custom: str

    @classmethod
    def read(cls, path: Path) -> Definition:
        """The definition in a file. Raises LeftOutError, which names the line or the member."""
        table = _json(path.read_text(), path.name, 1)
        axes = {n: _of(a, path.name, n, dict) for n, a in _part(table, "axes", path, dict).items()}
        kinds = {name: axis.get("type") for name, axis in axes.items()}
        for name, kind in kinds.items():
            if kind not in _AXES:
                what = f"axis '{name}' is of type {kind!r}, expected one of {', '.join(_AXES)}"
                raise _unreadable(path.name, what)
        known = {kind: {n: a for n, a in axes.items() if kinds[n] == kind} for kind in _AXES}
        made = cls(
            file=path.name,
            op_type=str(table.get("op_type") or ""),
            description=str(table.get("description") or ""),
            constant={n: _part(a, "value", path, int) for n, a in known["const"].items()},
            variable=tuple(known["var"]),
            derived={n: _part(a, "expression", path, str) for n, a in known["expr"].items()},
            constraints=tuple(map(str, table.get("constraints") or ())),
            inputs=_arguments(table, "inputs", path),
            outputs=_arguments(table, "outputs", path),
            reference=_part(table, "reference", path, str),
            custom=str(table.get("custom_inputs_entrypoint") or ""),
        )
        made.shapes(dict.fromkeys(made.variable, 64))
        return made

    def sizes(self, axes: Mapping[str, int]) -> dict[str, int]:
        """All axes, from the variable ones. Raises LeftOutError."""
        known = {**self.constant, **axes}
        for name, expression in self.derived.items():
            known[name] = self._value(expression, known)
        return known

    def shapes(self, axes: Mapping[str, int]) -> dict[str, tuple[int, ...] | None]:
        """The shapes of inputs and outputs; None for a number. Raises LeftOutError."""
        known = self.sizes(axes)
        return {
            name: None if one.shape is None else tuple(self._value(a, known) for a in one.shape)
            for name, one in {**self.inputs, **self.outputs}.items()
        }

    def check_constraints(self, axes: Mapping[str, int]) -> None:
        """Refuse sizes that break a constraint, and constraints on values. Raises LeftOutError."""
        known = self.sizes(axes)
        for constraint in self.constraints:
            try:
                holds = _evaluated(ast.parse(constraint.strip(), mode="eval").body, known)
            except (SyntaxError, ValueError, ArithmeticError):
                what = f"its constraint '{constraint}' is about values, and these are drawn"
                raise LeftOutError("NEEDS_DATA", what) from None
            if not holds:
                what = f"'{constraint}' does not hold in a workload"
                raise _unreadable(self.file, what)

    def _value(self, expression: str, known: Mapping[str, int]) -> int:
        try:
            value = _evaluated(ast.parse(expression.strip(), mode="eval").body, known)
        except (SyntaxError, ValueError, ArithmeticError) as error:
            raise _unreadable(self.file, f"the size '{expression}': {error}") from None
        if value != int(value):
            raise _unreadable(self.file, f"the size '{expression}' is {value}")
        return int(value)

    def load(self) -> Table:
        """The names of the reference's module, whose source tools can look at.

        Raises LeftOutError.
        """
        place = f"/original/{self.file}.py"
        linecache.cache[place] = (
            len(self.reference),
            None,
            self.reference.splitlines(keepends=True),
            place,
        )
        names: Table = {"__name__": "original_reference"}
        try:
            code = compile(self.reference, place, "exec")
        except (SyntaxError, ValueError) as error:
            raise _unreadable(self.file, f"its reference is not Python: {error}") from None
        needing_packages(lambda: exec(code, names))  # noqa: S102 - the task's own code
        for name in (RUN, *filter(None, [self.custom])):
            if not callable(names.get(name)):
                raise LeftOutError("NO_ENTRY", f"its reference defines no function '{name}'")
        return names

    def function(self, names: Table) -> Callable[..., Named]:
        """The reference as a function of its inputs, in the precision of these."""

        def run(*arguments: Any, **values: Any) -> Named:
            given = [*arguments, *(values[name] for name in [*self.inputs][len(arguments) :])]
            if not self._exact(given):
                return self._named(names[RUN](*given))
            with InDoubles():
                return self._named(names[RUN](*given))

        return run

    def _exact(self, given: list[Any]) -> bool:
        """Whether a workload gives doubles for inputs that are declared otherwise."""
        pairs = zip(given, self.inputs.values(), strict=True)
        double = torch.float64
        return any(isinstance(v, Tensor) and v.dtype == double != a.dtype for v, a in pairs)

    def _named(self, found: Any) -> Named:
        """Results by name. Raises LeftOutError."""
        if isinstance(found, dict):
            found = [found.get(name) for name in self.outputs]
        if not isinstance(found, tuple | list):
            found = [found]
        if len(found) != len(self.outputs):
            what = f"its reference returns {len(found)} results, and it has {len(self.outputs)}"
            raise LeftOutError("REFERENCE_DIFFERS", f"{what} outputs")
        made = Named()
        for (name, one), value in zip(self.outputs.items(), found, strict=True):
            if isinstance(value, bool | int | float):
                made[name] = torch.tensor(value, dtype=one.dtype)
            elif isinstance(value, Tensor):
                made[name] = value
            else:
                kind = type(value).__name__
                raise LeftOutError("RESULT_NOT_TENSORS", f"its '{name}' is of type '{kind}'")
        return made


def _kind(source: str) -> type:
    return type(f"{source.capitalize()}Input", (SimpleNamespace,), {"type": source})


_INPUTS = {source: _kind(source) for source in SOURCES}

STAND_INS: Table = {
    **{kind.__name__: kind for kind in _INPUTS.values()},
    **dict.fromkeys(("Definition", "Workload", "ResolvedEvalConfig")),
    "dtype_str_to_torch_dtype": lambda dtype: dtype,  # ours is a dtype already
}
"""What the schema's own functions take in the place of their classes, which need packages."""


def given_inputs(workload: Workload) -> dict[str, Any]:
    """The inputs of a workload, as the schema's own functions read them."""
    return {
        name: _INPUTS[source](value=workload.numbers.get(name))
        for name, source in workload.sources.items()
    }


def read_workloads(path: Path, inputs: Mapping[str, Argument]) -> list[Workload]:
    """The workloads in a file with one a line, bare or in a trace. Raises LeftOutError."""
    lines = enumerate(path.read_text().splitlines(), 1)
    return [_workload(line, path.name, n, inputs) for n, line in lines if line.strip()]


def _workload(line: str, file: str, number: int, inputs: Mapping[str, Argument]) -> Workload:
    table = _json(line, file, number)
    table = _of(table.get("workload", table), f"{file}:{number}", "workload", dict)
    where = f"{file}:{number}"
    axes = _of(table.get("axes"), where, "axes", dict)
    given = _of(table.get("inputs"), where, "inputs", dict)
    described = {n: _of(given.get(n, {"type": "random"}), where, n, dict) for n in inputs}
    for name, one in described.items():
        if one.get("type") not in SOURCES:
            known = ", ".join(SOURCES)
            what = f"input '{name}' is of type {one.get('type')!r}, expected one of {known}"
            raise _unreadable(where, what)
    numbers = {n: one.get("value") for n, one in described.items() if one["type"] == "scalar"}
    for name, value in numbers.items():
        if not isinstance(value, bool | int | float):
            raise _unreadable(where, f"input '{name}' is a scalar of value {value!r}")
    return Workload(
        {name: _of(size, where, name, int) for name, size in axes.items()},
        {name: one["type"] for name, one in described.items()},
        numbers,
        _of(table.get("tolerance") or {}, where, "tolerance", dict),
    )


def _arguments(table: Table, member: str, path: Path) -> dict[str, Argument]:
    return {
        name: _argument(_of(value, path.name, name, dict), name, path)
        for name, value in _part(table, member, path, dict).items()
    }


def _argument(table: Table, name: str, path: Path) -> Argument:
    shape, said = table.get("shape"), table.get("dtype")
    if shape is not None:
        shape = tuple(_of(axis, path.name, name, str) for axis in _part(table, "shape", path, list))
    dtype = getattr(torch, str(said), None)
    if not isinstance(dtype, torch.dtype):
        raise LeftOutError("ELEMENT_TYPE", f"'{name}' is of type {said!r}")
    return Argument(shape, dtype, str(table.get("description") or ""))


def _json(text: str, file: str, first: int) -> Table:
    try:
        return _of(json.loads(text), f"{file}:{first}", "it", dict)  # type: ignore[no-any-return]
    except json.JSONDecodeError as error:
        where = f"{file}:{first + error.lineno - 1}"
        raise _unreadable(where, f"it is not JSON: {error.msg}") from None
    except RecursionError:
        raise _unreadable(f"{file}:{first}", "it is nested too deeply") from None


def _part(table: Table, member: str, path: Path, kind: type) -> Any:
    return _of(table.get(member), path.name, member, kind)


def _of(value: Any, where: str, what: str, kind: type) -> Any:
    if type(value) is not kind:
        found = "missing" if value is None else f"{value!r}"[:60]
        raise _unreadable(where, f"'{what}' is {found}, expected {_KINDS[kind]}")
    return value


def _unreadable(where: str, what: str) -> LeftOutError:
    return LeftOutError("DOES_NOT_LOAD", f"{where}: {what}")


def _evaluated(node: ast.AST, known: Mapping[str, int]) -> float:
    """The value of a size. Raises ValueError and ArithmeticError."""
    match node:
        case ast.Constant(value=int() | float() as value):
            return value
        case ast.Name(id=name) if name in known:
            return known[name]
        case ast.Name(id=name):
            raise ValueError(f"no axis '{name}'")
        case ast.BinOp() | ast.UnaryOp() if type(node.op) in _OPERATORS:
            parts = (_evaluated(part, known) for part in _operands(node))
            return _OPERATORS[type(node.op)](*parts)  # type: ignore[no-any-return]
        case ast.Compare(left=left, ops=[sign], comparators=[right]) if type(sign) in _OPERATORS:
            compare = _OPERATORS[type(sign)]
            return compare(_evaluated(left, known), _evaluated(right, known))  # type: ignore[no-any-return]
    raise ValueError(f"'{ast.unparse(node)}' is not a sum or a product")


def _operands(node: ast.BinOp | ast.UnaryOp) -> Iterator[ast.expr]:
    if isinstance(node, ast.BinOp):
        yield from (node.left, node.right)
    else:
        yield node.operand
