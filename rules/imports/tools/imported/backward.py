"""The call that a ``torch.autograd.Function`` makes of the backward function that it gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from imported.boundary import LeftOutError
from imported.functions import Values

GIVEN = "grad_output"
"""The name of the result's gradient among the values of a call."""

_MOST = 8


@dataclass(frozen=True)
class Backward:
    """A call of a backward function.

    Attributes:
        forward: the arguments of the forward function, by name.
        more: arguments of the backward function that are neither among these nor ``GIVEN``.
        arguments: all its arguments: names of values, some of them in tuples.
        wanted: which arguments of the forward function it returns gradients of, in its order.
    """

    forward: Values
    more: Values
    given: Tensor
    arguments: tuple[Any, ...]
    wanted: tuple[int, ...]

    def drawn(self, fresh: Sequence[Any], values: Values) -> list[Any]:
        """What is drawn for a call: ``fresh`` among the ``values`` of the forward call, and
        ``GIVEN``."""
        ids = {id(value) for value in fresh}
        return [self.forward[n] for n, v in values.items() if id(v) in ids] + [self.given]

    @property
    def values(self) -> Values:
        """All parts of a call of ``gradients``, by name."""
        return {**self.forward, GIVEN: self.given, **self.more}

    def text(self, parts: Mapping[str, str]) -> str:
        """The call with each value as ``parts`` has it."""
        arguments = ", ".join(_text(argument, parts) for argument in self.arguments)
        forward = ", ".join(parts[name] for name in self.forward)
        return f"gradients(({arguments},), ({forward},), {self.wanted}, {parts[GIVEN]})"

    def computed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The gradients that PyTorch derives from ``function``, as a function of ``values``."""
        names, wanted = tuple(self.forward), self.wanted

        def gradients(**values: Any) -> Any:
            leaves = [values[name] for name in names]
            for index in wanted:
                leaves[index] = leaves[index].detach().requires_grad_()
            with torch.enable_grad():
                result = function(*leaves)
            of = [leaves[index] for index in wanted]
            found = torch.autograd.grad(result, of, values[GIVEN].to(result.dtype))
            parts = [part.contiguous() for part in found]
            return parts if len(parts) > 1 else parts[0]

        return gradients


def listen_backward(kind: Any, function: Callable[..., Any], forward: Values) -> Backward:
    """The call that ``kind``, an ``AutogradFunction``, makes of ``function``.

    Raises LeftOutError.
    """
    held = {n: v.detach() if isinstance(v, Tensor) else v for n, v in forward.items()}
    with torch.no_grad():
        given = torch.randn_like(function(**held))
    for count in range(_MOST):
        context, heard = _Context(), _Heard(count)
        kind.backward_fn = heard
        with torch.no_grad():
            kind.forward(context, *held.values())
            try:
                results = kind.backward(context, given)
            except (TypeError, ValueError):  # it expects another number of gradients
                continue
        results = results if isinstance(results, tuple) else (results,)
        return _backward(held, given, heard, results)
    raise LeftOutError("DOES_NOT_RUN", "its backward pass calls no backward function")


class _Context:
    """Stores what the forward pass saves for the backward pass."""

    saved_tensors: tuple[Any, ...] = ()

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors


class _Heard:
    """Stands for a backward function that returns ``count`` gradients; one for 0."""

    def __init__(self, count: int) -> None:
        self.arguments: tuple[Any, ...] = ()
        self.gradients = [object() for _ in range(max(count, 1))]
        self._single = not count

    def __call__(self, *arguments: Any) -> Any:
        self.arguments = arguments
        return self.gradients[0] if self._single else tuple(self.gradients)


def _backward(forward: Values, given: Tensor, heard: _Heard, results: Sequence[object]) -> Backward:
    places = {id(result): index for index, result in enumerate(results)}
    wanted = tuple(places.get(id(gradient), -1) for gradient in heard.gradients)
    if not heard.arguments or -1 in wanted:
        raise LeftOutError("DOES_NOT_RUN", "its backward pass does not return what it is given")
    known = {id(value): name for name, value in {**forward, GIVEN: given}.items()}
    more: dict[str, Any] = {}

    def named(value: Any) -> Any:
        if id(value) in known:
            return known[id(value)]
        if isinstance(value, list | tuple) and any(isinstance(v, Tensor) for v in value):
            return tuple(named(item) for item in value)
        more[f"more_{len(more)}"] = value
        return f"more_{len(more) - 1}"

    arguments = tuple(named(argument) for argument in heard.arguments)
    return Backward(forward, more, given, arguments, wanted)


def _text(argument: Any, parts: Mapping[str, str]) -> str:
    if isinstance(argument, tuple):
        return f"({', '.join(_text(item, parts) for item in argument)},)"
    return parts[argument]
