"""A graph divided into parts: single kernels, and groups of operators that one kernel could do."""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor
from torch.fx import Node

from modelled.graph import Graph, Kind, kind_of, value


@dataclass(frozen=True)
class Part:
    """Operators that are computed together.

    Attributes:
        nodes: in order, with the views that they read through.
        computing: those of them that no other part has, in order.
        inputs: what is computed elsewhere, in the order of use.
        outputs: what others need.
    """

    nodes: tuple[Node, ...]
    computing: tuple[Node, ...]
    inputs: tuple[Node, ...]
    outputs: tuple[Node, ...]


def divide(graph: Graph) -> list[Part]:
    """The parts, in an order in which they can run."""
    groups = _Groups(graph.nodes)
    owner = groups.owner()
    _absorb_trailing_views(graph, owner)
    members: dict[int, list[Node]] = {}
    for node in graph.nodes:
        if node in owner:
            members.setdefault(owner[node], []).append(node)
    needed = _needed_elsewhere(graph, owner)
    found = {number: _part(nodes, owner, needed) for number, nodes in members.items()}
    made = {node: number for number, part in found.items() for node in part.computing}
    return [found[number] for number in _ordered(found, made)]


class _Groups:
    """Which group computes each node. Groups never wait for each other in a circle."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._group: dict[Node, int] = {}
        self._into: dict[int, int] = {}
        self._reads: dict[int, set[int]] = {}
        self._fusable: set[int] = set()
        for number, node in enumerate(nodes):
            self._add(number, node)

    def owner(self) -> dict[Node, int]:
        """The group of every node that computes."""
        return {node: self._root(group) for node, group in self._group.items()}

    def _add(self, number: int, node: Node) -> None:
        kind = kind_of(node)
        if kind is Kind.VIEW:
            return
        if node.target is operator.getitem:
            self._group[node] = self._group[node.all_input_nodes[0]]
            return
        producers = dict.fromkeys(self._root(self._group[p]) for p in self._producers(node))
        self._group[node] = number
        self._reads[number] = {*producers}
        if kind is not Kind.FUSABLE:
            return
        self._fusable.add(number)
        for group in producers:
            one, other = self._root(group), self._root(number)
            if one != other and one in self._fusable and not self._detour(one, other):
                self._into[one] = other
                self._reads[other] = (self._reads[one] | self._reads[other]) - {one, other}

    def _detour(self, one: int, other: int) -> bool:
        """Whether a third group lies between two groups, so that they cannot be one."""
        both, seen = {one, other}, set[int]()
        waiting = [self._root(g) for group in both for g in self._reads[group]]
        waiting = [group for group in waiting if group not in both]
        while waiting:
            group = waiting.pop()
            if group in both:
                return True
            if group not in seen:
                seen.add(group)
                waiting += [self._root(g) for g in self._reads[group]]
        return False

    def _producers(self, node: Node) -> Iterator[Node]:
        """What computes the inputs of a node, behind views."""
        for source in node.all_input_nodes:
            if source in self._group:
                yield source
            elif source.op == "call_function":
                yield from self._producers(source)

    def _root(self, group: int) -> int:
        while group in self._into:
            group = self._into[group]
        return group


def _absorb_trailing_views(graph: Graph, owner: dict[Node, int]) -> None:
    """A result that is not contiguous belongs with the views through which all others read it.

    So attention, which may return its result transposed, is not followed by a copy.
    """
    for node in graph.nodes:
        if node not in owner or not isinstance(value(node), Tensor) or value(node).is_contiguous():
            continue
        chain, last, whole = [], node, 0
        while len(last.users) == 1 and last not in graph.results:
            last = next(iter(last.users))
            if kind_of(last) is not Kind.VIEW or len(last.all_input_nodes) > 1:
                break
            chain.append(last)
            if isinstance(value(last), Tensor) and value(last).is_contiguous():
                whole = len(chain)
        owner.update(dict.fromkeys(chain[:whole], owner[node]))


def _part(computing: Sequence[Node], owner: Mapping[Node, int], needed: Collection[Node]) -> Part:
    mine = owner[computing[0]]
    nodes: list[Node] = []
    inputs: list[Node] = []

    def need(node: Node) -> None:
        if node in nodes or node in inputs:
            return
        is_input = node.op != "call_function" or owner.get(node, mine) != mine
        if is_input:
            inputs.append(node)
            return
        for source in node.all_input_nodes:
            need(source)
        nodes.append(node)

    for node in computing:
        need(node)
    outputs = [node for node in computing if node in needed]
    return Part(tuple(nodes), tuple(computing), tuple(inputs), tuple(outputs))


def _needed_elsewhere(graph: Graph, owner: Mapping[Node, int]) -> set[Node]:
    """The nodes that another group or the caller reads."""
    found: set[Node] = set()

    def read(node: Node, reader: int | None) -> None:
        if node.op != "call_function":
            return
        if node in owner:
            if owner[node] != reader:
                found.add(node)
        else:
            for source in node.all_input_nodes:
                read(source, reader)

    for node in graph.nodes:
        if node in owner:
            for source in node.all_input_nodes:
                read(source, owner[node])
    for node in graph.results:
        read(node, None)
    return found


def _ordered(parts: Mapping[int, Part], made: Mapping[Node, int]) -> Iterator[int]:
    """The numbers of parts, each after those that it waits for."""
    done: set[int] = set()

    def visit(number: int) -> Iterator[int]:
        if number in done:
            return
        done.add(number)
        for node in parts[number].inputs:
            if node in made:
                yield from visit(made[node])
        yield number

    for number in sorted(parts):
        yield from visit(number)
