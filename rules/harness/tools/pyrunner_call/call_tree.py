"""A task's call in the runner: resolves its names, and constructs its objects once.

The call is a tree that was made from the task's declaration (``rules/harness/calls.py``).
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from base.places import ADAPTER, MODULES
from base.program import Program, names_in
from base.tensors import torch_dtype
from pyrunner.module import MissingEntry, load_module
from torch import Tensor

from pyrunner_call.constructing import undrawn

CANDIDATE = "candidate"
"""The name by which an adapter imports the candidate's module."""

_SEED = 0
Node = Mapping[str, Any]


class StateMismatch(Exception):  # noqa: N818 (the candidate's, no error of ours)
    """The candidate's object does not accept the config's state."""


@dataclass(frozen=True)
class Functions:
    """The functions that a call may use, and the call.

    Attributes:
        names: names of the entry; the first that the candidate defines is used.
        state_by: how an object takes its state: by name, or ``order``, by the order of its tensors.
    """

    candidate: ModuleType
    adapter: ModuleType | None
    targets: Any
    node: Node
    names: tuple[str, ...]
    state_by: str

    @classmethod
    def load(cls, program: Program, path: str) -> Functions:
        """Import the candidate and the task's adapter. Raises MissingEntry."""
        said = json.loads(program.call)
        if program.modules:
            sys.path.insert(0, MODULES)
        candidate = load_module(path)
        sys.modules[CANDIDATE] = candidate
        names = tuple(said["names"])
        if not any(hasattr(candidate, name) for name in names):
            raise MissingEntry(f"no function '{names[0]}'")
        adapter = load_module(ADAPTER, "adapter") if program.adapter else None
        return cls(candidate, adapter, said["targets"], said["node"], names, said["state_by"])

    def find(self, name: str) -> Any:
        """The function with a name: the adapter's, else the candidate's. Raises MissingEntry."""
        if self.adapter is not None and hasattr(self.adapter, name):
            return getattr(self.adapter, name)
        for known in self.names if name == self.names[0] else (name,):
            if hasattr(self.candidate, known):
                return getattr(self.candidate, known)
        raise MissingEntry(f"no function '{name}'")


class Boundary:
    """The call of a loaded config.

    Args:
        constants: by name, the values that are equal in every call: scalars, dims, ``None``.
        dtype: the dtype ``T``.
        state: state tensors by name. The call passes those that it names; the object that it
            constructs takes the others.
        home: the device of all tensors.
    """

    def __init__(
        self,
        functions: Functions,
        constants: Mapping[str, Any],
        dtype: str,
        state: Mapping[str, Tensor],
        home: torch.device,
    ) -> None:
        self._home = home
        self._functions = functions
        self._dtype = dtype
        self._constants = {**constants, **state}
        passed = names_in(functions.node)
        self._state = {name: tensor for name, tensor in state.items() if name not in passed}
        self._buffers: list[tuple[Tensor, Tensor]] = []
        torch.manual_seed(_SEED)
        with undrawn() if self._state else contextlib.nullcontext():
            function = self._value(functions.node["call"], self._constants)
        self.function: Callable[..., Any] = function
        if self._state:
            raise StateMismatch(
                f"the object has no place for the state '{next(iter(self._state))}'"
            )

    def operands(self, tensors: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments and keywords of one call with these tensors, given by name."""
        known = {**self._constants, **tensors}
        node = self._functions.node
        arguments = tuple(self._value(argument, known) for argument in node["args"])
        return arguments, {name: self._value(value, known) for name, value in node["keywords"]}

    def restore(self) -> None:
        """Restore the object's buffers, such as running statistics, which calls may change."""
        with torch.no_grad():
            for buffer, kept in self._buffers:
                buffer.copy_(kept)

    def _value(self, node: Node, known: Mapping[str, Any]) -> Any:
        if "call" in node:
            return self._constructed(self._called(node, known))
        ((kind, content),) = node.items()
        if kind in {"tuple", "list", "dict"}:
            return self._container(kind, content, known)
        if kind in {"attribute", "item"}:
            return self._part(kind, content, known)
        return self._leaf(kind, content, known)

    def _leaf(self, kind: str, content: Any, known: Mapping[str, Any]) -> Any:
        match kind:
            case "name":
                return known[content]
            case "dtype":
                return torch_dtype(self._dtype if content == "T" else content)
            case "function":
                return self._functions.find(content)
        return content

    def _part(self, kind: str, content: Sequence[Any], known: Mapping[str, Any]) -> Any:
        whole = self._value(content[0], known)
        if kind == "attribute":
            return getattr(whole, content[1])
        return whole[self._value(content[1], known)]

    def _container(self, kind: str, content: Sequence[Any], known: Mapping[str, Any]) -> Any:
        if kind == "dict":
            return {self._value(k, known): self._value(v, known) for k, v in content}
        items = [self._value(item, known) for item in content]
        return tuple(items) if kind == "tuple" else items

    def _called(self, node: Node, known: Mapping[str, Any]) -> Any:
        function = self._value(node["call"], known)
        arguments = [self._value(argument, known) for argument in node["args"]]
        return function(*arguments, **{n: self._value(v, known) for n, v in node["keywords"]})

    def _constructed(self, made: Any) -> Any:
        """Load the state into a newly constructed object, if it takes any."""
        if hasattr(made, "load_state_dict"):
            if self._home.type != "cpu":
                made = made.to(self._home)
            state, self._state = self._state, {}
            if self._functions.state_by == "order":
                state = _in_order(state, made.state_dict())
            try:
                made.load_state_dict(state, strict=True)
            except (RuntimeError, KeyError, TypeError) as error:
                raise StateMismatch(str(error)) from error
            self._buffers += [(buffer, buffer.clone()) for buffer in made.buffers()]
        return made


def _in_order(state: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The state under the object's own names; shapes and dtypes must match in order."""
    ours = [(tuple(tensor.shape), tensor.dtype) for tensor in state.values()]
    theirs = [(tuple(tensor.shape), tensor.dtype) for tensor in own.values()]
    if ours != theirs:
        raise StateMismatch(f"the object's tensors are {theirs}, those of the state {ours}")
    return dict(zip(own, state.values(), strict=True))
