"""A task's boundary as a call, ``y = ModelNew(features)(x)``, which is parsed but never run."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any

from kabuild.rule import AttributeProblem, suggest

from .signature import Signature
from .terms import DTYPES, ELEMENT

_PATH = ("call",)
_LONGEST = 4000
_CONSTANTS = (bool, int, float, str, type(None))
Node = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """A call, as the runner makes it.

    Attributes:
        entry: the name that the candidate must define.
        targets: the names of the results, nested in lists, with ``None`` for each one dropped;
            just ``None`` if nothing is returned.
        node: the expression as a tree of tables.
    """

    entry: str
    targets: Any
    node: Node

    def to_json(self) -> dict[str, Any]:
        """The form for the runner."""
        return {"targets": self.targets, "node": self.node}

    @property
    def returned(self) -> tuple[str, ...]:
        """The outputs among the targets, in order."""
        return tuple(_names(self.targets))


def read_call(text: str, signature: Signature, entry: str = "") -> Call:
    """The call in ``text``. Raises AttributeProblem.

    ``entry`` is the candidate's name, if it differs from the called function.
    """
    targets, expression = _parts(text)
    reader = _Reader(signature)
    node = reader.node(expression)
    if "call" not in node:
        raise AttributeProblem(f"'{text}' is not a call", _PATH, 'write "y = ModelNew()(x)"')
    call = Call(entry or _root(expression), _read_targets(targets), node)
    _check_outputs(call, signature, reader.used)
    return call


def _parts(text: str) -> tuple[ast.expr | None, ast.expr]:
    if len(text) > _LONGEST:
        raise AttributeProblem(f"a call has more than {_LONGEST} characters", _PATH)
    try:
        body = ast.parse(text.strip()).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        why = getattr(error, "msg", "") or str(error)
        raise AttributeProblem(f"'{text}' cannot be read: {why}", _PATH) from None
    match body:
        case [ast.Assign(targets=[target], value=value)]:
            return target, value
        case [ast.Expr(value=value)]:
            return None, value
        case _:
            raise AttributeProblem(
                f"'{text}' is not one call", _PATH, 'write "y = function(x)" or "function(x, y)"'
            )


def _read_targets(target: ast.expr | None) -> Any:
    match target:
        case None | ast.Name(id="_"):
            return None
        case ast.Name(id=name):
            return name
        case ast.Tuple(elts=items) | ast.List(elts=items):
            return [_read_targets(item) for item in items]
        case _:
            what = f"'{ast.unparse(target)}' cannot be assigned to"
            raise AttributeProblem(what, _PATH, "targets are outputs and '_'")


def _names(targets: Any) -> list[str]:
    if isinstance(targets, list):
        return [name for item in targets for name in _names(item)]
    return [targets] if targets is not None else []


def _root(node: ast.expr) -> str:
    """The name of the innermost function of ``f(...)(...)`` or ``f[grid](...)``."""
    while isinstance(node, ast.Call | ast.Subscript | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    if not isinstance(node, ast.Name):
        raise AttributeProblem(f"'{ast.unparse(node)}' is not a function's name", _PATH)
    return node.id


def _check_outputs(call: Call, signature: Signature, used: set[str]) -> None:
    """Check that every output is returned or passed, and that all other names are used."""
    outputs = [tensor.name for tensor in signature.outputs]
    for name in call.returned:
        if name not in (*outputs, *signature.updates):
            hint = suggest(name, outputs) or f"outputs: {', '.join(outputs) or 'none'}"
            raise AttributeProblem(f"the call assigns to '{name}', not an output", _PATH, hint)
    if doubled := [name for name in call.returned if call.returned.count(name) > 1]:
        raise AttributeProblem(f"the call assigns to '{doubled[0]}' twice", _PATH)
    for name in outputs:
        if name not in call.returned and name not in used:
            what = f"output '{name}' is neither returned by the call nor passed to it"
            raise AttributeProblem(what, ("outputs", name))
    for tensor in signature.inputs:
        if tensor.name not in used:
            what = f"input '{tensor.name}' is not passed to the call"
            raise AttributeProblem(what, ("inputs", tensor.name))


class _Reader:
    """Converts syntax into tables, and collects names."""

    def __init__(self, signature: Signature) -> None:
        self._operands = {
            *(tensor.name for tensor in (*signature.inputs, *signature.state)),
            *(name for name, _ in signature.scalars),
            *signature.dims,
        }
        # A function may share its name with an output.
        self._known = self._operands | {tensor.name for tensor in signature.outputs}
        self.used: set[str] = set()

    def node(self, node: ast.expr) -> Node:
        match node:
            case ast.Constant(value=value) if isinstance(value, _CONSTANTS):
                return {"value": value}
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
                return {"value": -value}
            case ast.Name(id=name):
                return self._name(name)
            case ast.Tuple() | ast.List() | ast.Dict():
                return self._container(node)
            case ast.Call(func=function, args=arguments, keywords=keywords):
                return self._call(function, arguments, keywords)
            case ast.Subscript(value=value, slice=index):
                return {"item": [self._function(value), self.node(index)]}
            case _:
                what = f"'{ast.unparse(node)}' cannot be in a call"
                hint = "use names, numbers, strings, True, False, None, dtypes, ( ), [ ] and { }"
                raise AttributeProblem(what, _PATH, hint)

    def _container(self, node: ast.Tuple | ast.List | ast.Dict) -> Node:
        if isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            return {"dict": [[self._key(key), self.node(value)] for key, value in pairs]}
        kind = "tuple" if isinstance(node, ast.Tuple) else "list"
        return {kind: [self.node(item) for item in node.elts]}

    def _key(self, node: ast.expr | None) -> Node:
        if isinstance(node, ast.Constant) and isinstance(node.value, str | int):
            return {"value": node.value}
        raise AttributeProblem("the keys of a dict in a call must be strings or integers", _PATH)

    def _name(self, name: str) -> Node:
        if name in self._known:
            self.used.add(name)
            return {"name": name}
        if name in DTYPES or name == ELEMENT:
            return {"dtype": name}
        known = ", ".join(sorted(self._known))
        hint = suggest(name, self._known) or f"declared: {known}"
        raise AttributeProblem(f"the call uses unknown name '{name}'", _PATH, hint)

    def _call(
        self, function: ast.expr, arguments: list[ast.expr], keywords: list[ast.keyword]
    ) -> Node:
        named: list[list[Any]] = []
        for keyword in keywords:
            if keyword.arg is None:
                raise AttributeProblem("a call names its keywords one by one, not by '**'", _PATH)
            named.append([keyword.arg, self.node(keyword.value)])
        return {
            "call": self._function(function),
            "args": [self.node(argument) for argument in arguments],
            "keywords": named,
        }

    def _function(self, node: ast.expr) -> Node:
        """The called object: a function of the candidate or the adapter, or a call's result."""
        match node:
            case ast.Name(id=name) if name not in self._operands:
                return {"function": name}
            case ast.Attribute(value=value, attr=attribute) if not attribute.startswith("_"):
                return {"attribute": [self._function(value), attribute]}
            case ast.Call() | ast.Subscript():
                return self.node(node)
            case _:
                raise AttributeProblem(f"'{ast.unparse(node)}' is not a function", _PATH)
