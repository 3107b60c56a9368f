"""Parts and graphs as Python text: what a kernel file, an oracle and a model's forward say."""

from __future__ import annotations

import keyword
import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Node

from modelled.graph import COPIES, Graph, Held, name_of, qualified, value
from modelled.parts import Part
from modelled.user_model import ModelError

_SHAPING = {"view", "reshape", "_unsafe_view"}
_DTYPES = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
_MOST_CONSTANTS = 1024
_ARGUMENT = re.compile(r"[a-z][a-z_]{0,30}", re.ASCII)
_TAKEN = {
    *("y", "torch", "draw", "state", "config", "generator", "dtype", "distribution", "stream"),
    *("workspace", "bool", "char", "const", "default", "delete", "double", "enum", "float", "int"),
    *("long", "new", "operator", "register", "short", "signed", "static", "switch", "template"),
    *("this", "typename", "union", "unsigned", "using", "void", *keyword.kwlist),
}
"""What no argument is called: names of results and of the judge, and keywords."""


@dataclass(frozen=True)
class Function:
    """A part as a function of tensors.

    Attributes:
        arguments: the names of its inputs, in order.
        results: the names of its outputs, in order.
        body: its lines, without the one that begins it.
        oracle: the same for any precision: it casts to none.
        as_it_is: the same with results as the model has them, contiguous or not.
    """

    arguments: tuple[str, ...]
    results: tuple[str, ...]
    body: tuple[str, ...] = field(repr=False)
    oracle: tuple[str, ...] = field(repr=False)
    as_it_is: tuple[str, ...] = field(repr=False)

    def text(self, name: str) -> str:
        """The function, called ``name``."""
        return _definition(name, self.arguments, self.body)

    def oracle_text(self, name: str) -> str:
        """The function for any precision, called ``name``."""
        return _definition(name, self.arguments, self.oracle)

    def text_as_it_is(self, name: str) -> str:
        """The function in its model, called ``name``: it copies nothing that the model does not."""
        return _definition(name, self.arguments, self.as_it_is)


def function_of(part: Part, held: Mapping[Node, Held]) -> Function:
    """The text of a part."""
    names: dict[Node, str] = {}
    for node in part.inputs:
        base = held[node].name if node in held else "x"
        base = base if _ARGUMENT.fullmatch(base) and base not in _TAKEN else "x"
        names[node] = _free(base, {*names.values()})
    arguments = tuple(names[node] for node in part.inputs)
    for number, node in enumerate(part.nodes):
        names[node] = f"t{number}"
    results = tuple(f"y{i}" if i else "y" for i in range(len(part.outputs)))
    body, oracle = (tuple(_lines(part, names, exact=exact)) for exact in (True, False))
    as_it_is = tuple(_lines(part, names, exact=True, contiguous=False))
    return Function(arguments, results, body, oracle, as_it_is)


def graph_text(graph: Graph, parts: Sequence[tuple[Part, str]]) -> str:
    """``forward(w, c, *arguments)`` that calls each part by the name of its function.

    ``w`` are the weights and buffers in the order of ``graph.held``, ``c`` the constants.
    """
    names = {node: f"w[{i}]" for i, node in enumerate(graph.held)}
    names |= {node: f"c[{i}]" for i, node in enumerate(graph.constants)}
    names |= {node: f"a{i}" for i, node in enumerate(graph.arguments)}
    lines: list[str] = []

    def reach(node: Node) -> str:
        """The name of a node's value; views that no part has are computed first."""
        if node not in names:
            for source in node.all_input_nodes:
                reach(source)
            name = f"v{len(names)}"
            lines.append(f"{name} = {_expression(node, names, exact=True)}")
            names[node] = name
        return names[node]

    for part, function in parts:
        given = ", ".join(reach(node) for node in part.inputs)
        for node in part.outputs:
            names[node] = f"v{len(names)}"
        targets = ", ".join(names[node] for node in part.outputs)
        if targets:
            lines.append(f"{targets} = {function}({given})")
    returned = ", ".join(reach(node) for node in graph.results)
    lines.append(f"return {returned}" + "," * (not graph.one_result and len(graph.results) == 1))
    arguments = ("w", "c", *(names[node] for node in graph.arguments))
    return _definition("forward", arguments, lines)


def constants_text(graph: Graph) -> list[str]:
    """The constants as expressions. Raises ModelError for large ones."""
    found = []
    for tensor in graph.constants.values():
        if tensor.numel() > _MOST_CONSTANTS:
            what = f"its code contains a tensor of {tensor.numel()} elements; register it as buffer"
            raise ModelError("LARGE_CONSTANT", what)
        found.append(f"torch.tensor({tensor.tolist()!r}, dtype={tensor.dtype})")
    return found


def _definition(name: str, arguments: Sequence[str], lines: Sequence[str]) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"def {name}({', '.join(arguments)}):\n{body}\n"


def _free(name: str, taken: set[str]) -> str:
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}{number}"
    return found


def _lines(
    part: Part, names: Mapping[Node, str], *, exact: bool, contiguous: bool = True
) -> Iterator[str]:
    like = next((names[n] for n in part.inputs if isinstance(value(n), Tensor)), "")
    for node in part.nodes:
        yield f"{names[node]} = {_expression(node, names, exact=exact, like=like)}"
    results = [
        names[node] + (".contiguous()" if contiguous and not value(node).is_contiguous() else "")
        for node in part.outputs
    ]
    yield f"return {', '.join(results)}"


def _expression(node: Node, names: Mapping[Node, str], *, exact: bool, like: str = "") -> str:
    if node.target is operator.getitem:
        return f"{names[node.args[0]]}[{node.args[1]}]"  # type: ignore[index]
    name = name_of(node)
    first = node.args[0] if node.args else None
    if name in _SHAPING and isinstance(first, Node):
        return f"{names[first]}.reshape({_sizes(node, first, names[first])})"
    if not exact and name in COPIES and isinstance(first, Node) and _changes_precision(node, first):
        return names[first]
    if not isinstance(node.target, OpOverload):
        raise ModelError("UNKNOWN_OPERATOR", f"it calls {node.target}")
    tensors = [source for source in node.all_input_nodes if isinstance(value(source), Tensor)]
    like = names[tensors[0]] if tensors else like
    write = _Writer(names, like, exact=exact or not tensors)
    texts = [write(argument) for argument in node.args]
    texts += [f"{key}={write(argument)}" for key, argument in node.kwargs.items()]
    return f"torch.ops.{'.'.join(qualified(node.target))}({', '.join(texts)})"


def _changes_precision(node: Node, first: Node) -> bool:
    """Whether a copy only casts from one precision to another."""
    before, after = value(first), value(node)
    return (
        isinstance(before, Tensor)
        and {before.dtype, after.dtype} <= _DTYPES
        and (name_of(node) in {"to", "_to_copy"})
    )


@dataclass(frozen=True)
class _Writer:
    """Arguments as text; ``like`` is a tensor on the device that is meant."""

    names: Mapping[Node, str]
    like: str
    exact: bool

    def __call__(self, argument: Any) -> str:
        if isinstance(argument, Node):
            return self.names[argument]
        if isinstance(argument, list | tuple):
            return f"[{', '.join(map(self, argument))}]"
        if isinstance(argument, torch.dtype) and argument in _DTYPES and not self.exact:
            return "None"
        if isinstance(argument, torch.device):
            return f"{self.like}.device" if self.like else repr(argument.type)
        return _literal(argument)


def _literal(argument: Any) -> str:
    if isinstance(argument, float) and not math.isfinite(argument):
        return f"float('{argument}')"
    if isinstance(argument, bool | int | float | str | None):
        return repr(argument)
    if isinstance(argument, torch.dtype | torch.layout | torch.memory_format):
        return str(argument)
    kind = type(argument).__name__
    raise ModelError("UNKNOWN_OPERATOR", f"an operator has an argument of type {kind}")


def _sizes(node: Node, first: Node, name: str) -> str:
    """New sizes in terms of old ones where they agree at either end, so that sizes may vary."""
    old, new = list(value(first).shape), list(value(node).shape)
    front = 0
    while front < min(len(old), len(new)) and old[front] == new[front]:
        front += 1
    back = 0
    while back < min(len(old), len(new)) - front and old[-1 - back] == new[-1 - back]:
        back += 1
    texts = [f"{name}.shape[{i}]" for i in range(front)]
    middle = [str(size) for size in new[front : len(new) - back]]
    if middle and 0 not in new:
        middle[0] = "-1"
    texts += middle
    texts += [f"{name}.shape[{i}]" for i in range(-back, 0)]
    return ", ".join(texts)
