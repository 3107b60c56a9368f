"""A model as a graph of operators: what PyTorch exports, without mutation."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.fx import Node

from modelled.user_model import ModelError, UserModel, described


class Kind(Enum):
    """What an operator does with memory.

    A VIEW computes nothing. A FUSABLE operator could be computed while its inputs are read for
    another one. Any OTHER is a separate kernel: matrix products, attention, lookups.
    """

    VIEW = "view"
    FUSABLE = "fusable"
    OTHER = "other"


COPIES = {"to", "contiguous", "_to_copy", "clone", "cat", "stack", "repeat", "repeat_interleave"}
"""Operators that move data; the first ones may also return their input."""

_FUSABLE = COPIES | {
    *("softmax", "_softmax", "log_softmax", "_log_softmax", "layer_norm", "native_layer_norm"),
    *("rms_norm", "group_norm", "native_group_norm", "batch_norm", "dropout", "cumsum"),
    *("_native_batch_norm_legit_no_training", "constant_pad_nd", "pad", "tril", "triu", "flip"),
    *("roll", "mean", "sum", "var", "var_mean", "std", "amax", "amin", "linalg_vector_norm"),
}
_MADE = {"arange", "full", "zeros", "ones", "empty", "scalar_tensor", "full_like", "zeros_like"}
_MADE |= {"ones_like", "new_zeros", "new_ones", "new_full", "eye", "linspace"}
_CHECKS = ("_assert", "sym_constrain", "_guard", "lift_fresh")


@dataclass(frozen=True)
class Held:
    """A tensor of the module: the path of its owner, and its name there."""

    owner: str
    name: str


@dataclass(frozen=True)
class Graph:
    """A model's operators, in an order in which they can run.

    Attributes:
        nodes: all that compute or view.
        held: the placeholders of weights and buffers.
        constants: the values of tensors that the code contains.
        arguments: the placeholders of arguments, in order.
        results: what the model returns, in order.
        one_result: whether it returns a tensor rather than a tuple.
    """

    nodes: tuple[Node, ...]
    held: Mapping[Node, Held]
    constants: Mapping[Node, Tensor]
    arguments: tuple[Node, ...]
    results: tuple[Node, ...]
    one_result: bool


def export(model: UserModel) -> Graph:
    """The graph of a model's call. Raises ModelError where PyTorch cannot export it."""
    from torch.export import export as export_program
    from torch.export.graph_signature import InputKind, OutputKind

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            program = export_program(model.module, model.arguments, strict=False)
            program = program.run_decompositions({})
        except Exception as error:
            what = (
                f"torch.export refuses it: {described(error, getattr(model.code, '__file__', ''))}"
            )
            raise ModelError("NOT_EXPORTABLE", what) from error
    signature = program.graph_signature
    if any(spec.kind is not OutputKind.USER_OUTPUT for spec in signature.output_specs):
        what = "a call changes the module's buffers; build() should return it in eval mode"
        raise ModelError("CHANGES_BUFFERS", what)
    by_name = {node.name: node for node in program.graph.nodes}
    held: dict[Node, Held] = {}
    constants: dict[Node, Tensor] = {}
    arguments: list[Node] = []
    for spec in signature.input_specs:
        node = by_name[spec.arg.name]
        if spec.kind is InputKind.USER_INPUT:
            arguments.append(node)
        elif spec.kind is InputKind.CONSTANT_TENSOR:
            constants[node] = program.constants[str(spec.target)]
        else:
            owner, _, name = str(spec.target).rpartition(".")
            held[node] = Held(owner, name)
    nodes = tuple(n for n in program.graph.nodes if n.op == "call_function" and not _is_check(n))
    return Graph(
        nodes,
        held,
        constants,
        tuple(arguments),
        tuple(_returned(by_name, signature.output_specs)),
        one_result=isinstance(model.module(*model.arguments), Tensor),
    )


def _returned(by_name: Mapping[str, Node], specs: Sequence[Any]) -> Iterator[Node]:
    for spec in specs:
        name = getattr(spec.arg, "name", "")
        if name not in by_name:
            raise ModelError("RESULT_NOT_TENSORS", "a result does not depend on the arguments")
        yield by_name[name]


def _is_check(node: Node) -> bool:
    return name_of(node).startswith(_CHECKS)


def name_of(node: Node) -> str:
    """The operator's name without overload: ``softmax``."""
    if isinstance(node.target, OpOverload):
        return qualified(node.target)[1]
    return getattr(node.target, "__name__", str(node.target))


def qualified(target: OpOverload) -> tuple[str, str, str]:
    """Namespace, name and overload of an operator: ``aten``, ``add``, ``Tensor``."""
    text: str = target.name()  # type: ignore[no-untyped-call]
    namespace, _, rest = text.partition("::")
    name, _, overload = rest.partition(".")
    return namespace, name, overload or "default"


def kind_of(node: Node) -> Kind:
    """What an operator does with memory."""
    if node.target is operator.getitem:
        return kind_of(node.all_input_nodes[0])
    name = name_of(node)
    if name in _FUSABLE or name in _MADE:
        return Kind.FUSABLE
    if not isinstance(node.target, OpOverload):
        return Kind.OTHER
    if name in _WITHOUT_ALIAS or _is_alias(node.target):
        return Kind.VIEW
    known = {torch.Tag.pointwise, torch.Tag.reduction} & {*node.target.tags}
    return Kind.FUSABLE if known else Kind.OTHER


def _is_alias(target: OpOverload) -> bool:
    """Whether an operator returns its input's memory, unchanged."""
    returned = target._schema.returns  # noqa: SLF001 - PyTorch has no other place that says it
    alias = returned[0].alias_info if returned else None
    return alias is not None and not alias.is_write


_WITHOUT_ALIAS = {"_unsafe_view"}


def value(node: Node) -> Any:
    """A tensor without data that says shape, dtype and strides; a list of them of some nodes."""
    return node.meta["val"]


def path_of(node: Node) -> tuple[tuple[str, str], ...]:
    """The modules whose code called an operator, outermost first: path and class."""
    stack = (node.meta.get("nn_module_stack") or {}).values()
    return tuple((str(path), str(kind).rpartition(".")[2]) for path, kind in stack)


def bytes_of(node: Node) -> int:
    """Bytes of the tensors of a node."""
    found = value(node)
    tensors = found if isinstance(found, list | tuple) else [found]
    return sum(math.prod(t.shape) * t.element_size() for t in tensors if isinstance(t, Tensor))
