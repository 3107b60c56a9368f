"""What happens while a script checks the stand-in for its module."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from imported.functions import Values, tensors
from imported.modules import first_line

Matches = dict[str, dict[str, str]]


class DoneError(BaseException):
    """All was seen. No script takes it for an error of its own."""


@dataclass
class Seen:
    """What one run of a script showed.

    Attributes:
        entry: the function that was called; ``""`` where none was.
        other: another function of the module that was called with tensors.
        values: its arguments by name, tensors as they were before the call.
        raised: what that function raised.
        result: what the module's own function returned, without its kernels' having run.
        expected: what results, and changed arguments, were compared with, by their names.
        answers: the tensors that these functions returned or changed, in order.
        matches: for each function of the script that computes what is expected, which of its
            arguments are arguments of the call.
        error: what the script raised or said in the end.
    """

    entry: str = ""
    other: str = ""
    raised: str = ""
    values: Values = field(default_factory=dict)
    result: Any = None
    expected: dict[str, Tensor] = field(default_factory=dict)
    answers: list[Tensor] = field(default_factory=list)
    matches: Matches = field(default_factory=dict)
    error: str = ""


@dataclass
class Stage:
    """What happens to the module's call and to the script's own functions."""

    seen: Seen
    given: Mapping[str, Any] | None
    updates: Sequence[str]
    matches: Matches
    exact: bool
    running: bool = False
    fillers: dict[str, Tensor] = field(default_factory=dict)
    called: dict[str, Tensor] = field(default_factory=dict)
    copies: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    references: list[tuple[str, dict[str, Tensor], dict[str, Tensor]]] = field(default_factory=list)
    inside: bool = False
    calling: bool = False

    @property
    def exactly(self) -> bool:
        """Whether what is expected is being computed: not the script's inputs, nor the call."""
        return not self.calling and (self.inside or bool(self.seen.entry))

    def reference(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The script's function, whose arguments are replaced as those of the call are."""

        def called(*args: Any, **kwargs: Any) -> Any:
            if self.inside or not self.running:
                return function(*args, **kwargs)
            bound = inspect.signature(function).bind(*args, **kwargs).arguments
            found = tensors(bound)
            copies = {path: tensor.detach().clone() for path, tensor in found.items()}
            self.references.append((name, found, copies))
            if self.given is not None:
                for path, source in self.matches.get(name, {}).items():
                    if path in found:
                        _put(found[path], self.given[source], exact=self.exact)
            self.inside = True
            try:
                result = function(*args, **kwargs)
            finally:
                self.inside = False
            returned = result if isinstance(result, list | tuple) else [result]
            for answer in (*returned, *found.values()):
                if isinstance(answer, Tensor):
                    self.seen.answers.append(answer.detach().clone())
            return result

        return called

    def call(self, name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """The call of the module's function."""
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
        found = tensors(bound)
        if not found:
            return function(*args, **kwargs)
        if self.seen.entry:
            self.seen.other = name if name != self.seen.entry else ""
            raise DoneError
        self.inside = True
        self.seen.entry = name
        self.seen.values = _copied(bound)
        if self.given is None:
            self.seen.result = _copied(self._idle(function, args, kwargs))
            self.called = found
            self.inside = False
            return self.seen.result
        kept = {path: [*self._kept(tensor), tensor] for path, tensor in found.items()}
        result = self._idle(function, args, kwargs)
        for path, places in kept.items():
            for place in places:
                _put(place, self.given[path], exact=self.exact)
        for path in self.updates:
            self.fillers[path] = _filler(found[path])
            _put(found[path], self.fillers[path], exact=True)
        named = results(result)
        fresh = [n for n, t in named.items() if not any(t is u for u in found.values())]
        for path in fresh:
            self.fillers[path] = _filler(named[path])
            named[path].data = self.fillers[path].clone()
        self.seen.result = result
        self.inside = False
        return result

    def _idle(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """What the module's function returns where no kernel runs."""
        self.calling = True
        try:
            return function(*args, **kwargs)
        except Exception as error:
            self.seen.raised = first_line(error)
            raise
        finally:
            self.calling = False

    def copied(self, one: Any, other: Any) -> None:
        """Note that the script keeps a copy, before the call."""
        if isinstance(one, Tensor) and isinstance(other, Tensor) and not self.seen.entry:
            self.copies.append((one, other))

    def _kept(self, tensor: Tensor) -> list[Tensor]:
        """What the script keeps of an argument: its copies, or what it is a copy of."""
        pairs = [pair for pair in self.copies if pair[0] is tensor or pair[1] is tensor]
        other = [one if copy is tensor else copy for one, copy in pairs]
        return [t for t in other if t.shape == tensor.shape and _same(t, tensor)]

    def compared(self, one: Any, other: Any) -> bool:
        """Whether one side is a result of the call; the other is noted down."""
        if self.inside or not self.fillers:
            return False
        for got, expected in ((one, other), (other, one)):
            if not (isinstance(got, Tensor) and isinstance(expected, Tensor)):
                return False
            for name, filler in self.fillers.items():
                if got.shape == filler.shape == expected.shape and _same(got, filler):
                    self.seen.expected.setdefault(name, expected.detach().clone())
                    return True
        return False

    def matched(self) -> Matches:
        """Which arguments of the script's functions are those of the call: themselves, or equal."""
        before = tensors(self.seen.values)
        found: Matches = {}
        for name, objects, copies in self.references:
            for path, copy in copies.items():
                alike = [n for n, t in before.items() if t.shape == copy.shape and _same(t, copy)]
                itself = [n for n, t in self.called.items() if t is objects[path]]
                if chosen := (itself or [n for n in alike if n == path] or alike):
                    found.setdefault(name, {})[path] = chosen[0]
        return found


def results(value: Any) -> dict[str, Tensor]:
    """The tensors of a result by the names that a declaration gives them."""
    if isinstance(value, Tensor):
        return {"y": value}
    if isinstance(value, list | tuple):
        return {f"y{i}": item for i, item in enumerate(value) if isinstance(item, Tensor)}
    return {}


def _put(place: Tensor, value: Tensor, *, exact: bool) -> None:
    """Give a tensor of the script other contents; ``exact`` are in the precision of ``value``."""
    copy = value.detach().clone().reshape(place.shape)
    place.data = copy if exact else copy.to(place.dtype)


def _copied(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone().contiguous()
    if isinstance(value, list | tuple):
        return type(value)(_copied(item) for item in value)
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return value


def _filler(like: Tensor) -> Tensor:
    """Small integers, which no cast rounds, so that a result is known again."""
    generator = torch.Generator(like.device).manual_seed(like.numel())
    high = 2 if like.dtype is torch.bool else 16
    drawn = torch.randint(0, high, like.shape, generator=generator, device=like.device)
    return drawn.to(like.dtype)


def _same(one: Tensor, other: Tensor) -> bool:
    with torch._C.DisableTorchFunction():  # noqa: SLF001 - it has no other name
        return bool((one.double().cpu() == other.double().cpu()).all())
