"""Parts that are the same function of tensors, whatever their sizes: what one kernel can do."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.fx import Node

from modelled.graph import Graph, Kind, bytes_of, kind_of, name_of, path_of, value
from modelled.parts import Part, divide
from modelled.writing import Function, function_of

Shapes = tuple[tuple[int, ...], ...]
_MOST_WORDS, _MOST_LETTERS = 3, 40
_TAKEN = {"whole", "step", "torch", "inputs", "state", "reference", "build"}
"""What no part is called, because files of tasks have these names for something else."""


@dataclass(frozen=True)
class Unit:
    """One function that a model calls.

    Attributes:
        name: unique in its model, an identifier.
        function: its text.
        parts: where it is called.
        fused: whether it consists of operators that one kernel could do.
    """

    name: str
    function: Function
    parts: tuple[Part, ...] = field(repr=False)
    fused: bool

    @property
    def shapes(self) -> Counter[Shapes]:
        """The number of calls by the shapes of inputs."""
        return Counter(input_shapes(part) for part in self.parts)

    @property
    def dtypes(self) -> tuple[torch.dtype, ...]:
        """Of its inputs."""
        return tuple(value(node).dtype for node in self.parts[0].inputs)

    @property
    def operators(self) -> tuple[str, ...]:
        """The names of the operators that compute, in order."""
        computing = (n for n in self.parts[0].computing if kind_of(n) is not Kind.VIEW)
        return tuple(name for n in computing if (name := name_of(n)) != "getitem")


def input_shapes(part: Part) -> Shapes:
    """The shapes of a part's inputs."""
    return tuple(tuple(value(node).shape) for node in part.inputs)


def traffic(part: Part) -> int:
    """Bytes of a part's inputs and outputs: what one kernel must move."""
    looked_up = sum(
        bytes_of(part.inputs[0]) - bytes_of(node)
        for node in part.computing
        if name_of(node) == "embedding" and node.args[0] is part.inputs[0]
    )
    return sum(map(bytes_of, (*part.inputs, *part.outputs))) - max(0, looked_up)


def find_units(graph: Graph) -> list[Unit]:
    """The units of a graph, in the order of their first call."""
    found: dict[object, tuple[Function, list[Part]]] = {}
    parts = divide(graph)
    for part in parts:
        function = function_of(part, graph.held)
        kinds = tuple((value(node).dtype, value(node).dim()) for node in part.inputs)
        found.setdefault((function.text("f"), kinds), (function, []))[1].append(part)
    inside = _modules(graph)
    names: list[str] = []
    units = []
    for function, members in found.values():
        name = _unique(_name(members[0], inside), names)
        fused = all(kind_of(node) is not Kind.OTHER for node in members[0].computing)
        units.append(Unit(name, function, tuple(members), fused))
        names.append(name)
    return units


def _modules(graph: Graph) -> Mapping[str, set[Node]]:
    """By module's path, the nodes that compute in it."""
    found: dict[str, set[Node]] = {}
    for node in graph.nodes:
        if kind_of(node) is not Kind.VIEW:
            for path, _ in path_of(node):
                found.setdefault(path, set()).add(node)
    return found


def _name(part: Part, inside: Mapping[str, set[Node]]) -> str:
    """The modules that a part does the whole work of, else its operators."""
    words: list[str] = []
    for node in part.computing:
        if kind_of(node) is not Kind.VIEW and name_of(node) != "getitem":
            word = next(_whole_modules(node, part, inside), name_of(node))
            if words[-1:] != [word]:
                words.append(word)
    text = re.sub(r"\W", "_", "_".join(words[:_MOST_WORDS])).lower()[:_MOST_LETTERS].strip("_")
    free = text.isidentifier() and text.isascii() and not keyword.iskeyword(text)
    return text if free and text not in _TAKEN else f"part_{text}"


def _whole_modules(node: Node, part: Part, inside: Mapping[str, set[Node]]) -> Iterator[str]:
    for path, kind in path_of(node):
        if path and inside[path] <= {*part.computing}:
            yield re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", kind).lower()


def _unique(name: str, taken: Sequence[str]) -> str:
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


def sample_inputs(unit: Unit, device: str = "meta") -> list[Tensor]:
    """Tensors as the first call of a unit gets them, without data."""
    return [
        torch.empty(value(node).shape, dtype=value(node).dtype, device=device)
        for node in unit.parts[0].inputs
    ]
