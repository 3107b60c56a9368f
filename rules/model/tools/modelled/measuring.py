"""Runs a graph node by node: times, operations, and the values that the parts get."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node, map_arg
from torch.utils.flop_counter import FlopCounterMode

from modelled.clocks import Clock
from modelled.graph import COPIES, Graph, Kind, kind_of, name_of, value
from modelled.user_model import UserModel

_SECONDS = 1.0
_LEAST, _MOST = 5, 50
Values = dict[Node, Any]


def bound(graph: Graph, model: UserModel, arguments: Sequence[Tensor]) -> Values:
    """The values of a graph's placeholders."""
    found: Values = dict(zip(graph.arguments, arguments, strict=True))
    for node, held in graph.held.items():
        found[node] = getattr(model.module.get_submodule(held.owner), held.name)
    found |= {node: tensor.to(model.device) for node, tensor in graph.constants.items()}
    return found


def run(graph: Graph, values: Values, call: Callable[[Node, Callable[[], Any]], Any]) -> Values:
    """The values of all nodes; each is computed by ``call``."""
    with torch.no_grad():
        for node in graph.nodes:
            values[node] = call(node, _bound_call(node, values))
    return values


def _bound_call(node: Node, values: Mapping[Node, Any]) -> Callable[[], Any]:
    arguments, keywords = map_arg((node.args, node.kwargs), lambda n: values[n])
    target: Any = node.target
    return lambda: target(*arguments, **keywords)


@dataclass(frozen=True)
class Times:
    """Seconds of each node, and of a call of the module itself.

    Each is the lower quartile of its readings, because other programs can only add time.
    """

    nodes: Mapping[Node, float]
    eager: float


def measure(graph: Graph, model: UserModel, clock: Clock) -> Times:
    """Time the module and its nodes, in turns."""
    readings: dict[Node, list[float]] = {node: [] for node in graph.nodes}
    eager = []

    def timed(node: Node, call: Callable[[], Any]) -> Any:
        seconds, result = clock.seconds(call)
        readings[node].append(seconds)
        return result

    def module(arguments: Sequence[Tensor]) -> float:
        with torch.no_grad():
            return clock.whole(lambda: model.module(*arguments))

    run(graph, bound(graph, model, model.arguments), _plain)
    module(model.arguments)
    estimate = max(module(model.arguments), 1e-6)
    for number in range(max(_LEAST, min(_MOST, int(_SECONDS / estimate)))):
        arguments = model.draw(number)
        eager.append(module(arguments))
        run(graph, bound(graph, model, arguments), timed)
    return Times({node: _quartile(found) for node, found in readings.items()}, _quartile(eager))


def _quartile(readings: Sequence[float]) -> float:
    quartile: float = statistics.quantiles(readings, n=4)[0]
    return quartile


def _plain(_: Node, call: Callable[[], Any]) -> Any:
    return call()


def node_operations(graph: Graph, model: UserModel) -> dict[Node, int]:
    """Operations of each node: those of products are counted by PyTorch, others one an element."""
    found: dict[Node, int] = {}

    def counted(node: Node, call: Callable[[], Any]) -> Any:
        with FlopCounterMode(display=False) as counter:
            result = call()
        found[node] = counter.get_total_flops() or _attention(node) or _elements(node)
        return result

    run(graph, bound(graph, model, model.arguments), counted)
    return found


def _attention(node: Node) -> int:
    """Operations of attention, which PyTorch does not count on a processor."""
    if name_of(node) != "scaled_dot_product_attention":
        return 0
    query, key, found = (value(source) for source in node.all_input_nodes[:3])
    pairs = query.shape[:-1].numel() * key.shape[-2]
    return int(2 * pairs * (query.shape[-1] + found.shape[-1]))


def _elements(node: Node) -> int:
    """Elements that an operator reads or writes, whichever are more; 0 for copies."""
    if kind_of(node) is not Kind.FUSABLE or name_of(node) in {*COPIES, "getitem"}:
        return 0
    sizes = [value(node), *(value(source) for source in node.all_input_nodes)]
    return max((t.numel() for t in sizes if isinstance(t, Tensor)), default=0)
