"""What happens while a script checks the stand-in for its module."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from imported.functions import Values, tensors
from imported.modules import first_line

_KEPT_ELEMENTS = 1 << 20
"""Of a filler that is made once for all calls."""

Matches = dict[str, dict[str, str]]
Births = dict[str, tuple[int, int]]
_OPTION, _EITHER = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD


class DoneError(BaseException):
    """Ends a script once everything was observed; the script does not catch it."""


class Unread:
    """What a function would have returned. To look into it ends the script before its call."""

    def __getattr__(self, name: str) -> Any:
        raise TypeError(f"'{name}' is asked of what was not computed")

    def __bool__(self) -> bool:
        raise TypeError("the truth is asked of what was not computed")


@dataclass
class Seen:
    """The observations of one run of a script.

    Attributes:
        entry: the function that was called, or the kernel that was launched; ``""`` for none.
        grid: that of the launch; ``None`` for a call.
        other: another function of the module that was called with tensors.
        values: its arguments by name, tensors as they were before the call.
        raised: what that function raised.
        result: what the module's own function returned, without its kernels' having run.
        expected: what results, and changed arguments, were compared with, by their names.
        stepped: those of them that are integers and are compared as floats.
        answers: the tensors that these functions returned or changed, in order.
        matches: for each function of the script that computes what is expected, which of its
            arguments are arguments of the call.
        births: for arguments by name, the operation of the script that gave them their last
            contents, and the place among its tensors.
        steps: the number of functions of PyTorch's that ran.
        error: what the script raised or said in the end.
    """

    entry: str = ""
    grid: tuple[int, ...] | None = None
    other: str = ""
    raised: str = ""
    values: Values = field(default_factory=dict)
    result: Any = None
    expected: dict[str, Tensor] = field(default_factory=dict)
    stepped: set[str] = field(default_factory=set)
    answers: list[Tensor] = field(default_factory=list)
    matches: Matches = field(default_factory=dict)
    births: Births = field(default_factory=dict)
    steps: int = 0
    error: str = ""


@dataclass
class Stage:
    """What happens to the module's call and to the script's own functions.

    Attributes:
        given: what takes the place of the call's tensors, before the script computes what it
            expects.
        briefly: whether the script ends with the call.
        noting: whether ``births`` of what is seen are noted down, which takes a while.
        replies: what the call returns and leaves in its ``updates``, by name.
        apart: whether the functions that compute what is expected are not run before the call.
    """

    seen: Seen
    given: Mapping[str, Any] | None
    updates: Sequence[str]
    matches: Matches
    exact: bool
    births: Births = field(default_factory=dict)
    briefly: bool = False
    noting: bool = False
    replies: Mapping[str, Tensor] | None = None
    apart: bool = False
    running: bool = False
    fillers: dict[str, Tensor] = field(default_factory=dict)
    called: dict[str, Tensor] = field(default_factory=dict)
    copies: list[tuple[Tensor, Tensor]] = field(default_factory=list)
    references: list[tuple[str, dict[str, Tensor], dict[str, Tensor]]] = field(default_factory=list)
    inside: bool = False
    calling: bool = False
    operations: int = 0
    born: dict[int, tuple[Tensor, int, tuple[int, int]]] = field(default_factory=dict)

    @property
    def exactly(self) -> bool:
        """Whether what is expected is being computed: not the script's inputs, nor the call."""
        if self.calling:
            return False
        after = self.births and self.operations > max(self.births.values())[0]
        return self.inside or bool(self.seen.entry) or bool(after)

    @property
    def traces(self) -> bool:
        """Whether ``operated`` is asked for: where the contents of arguments come from matters."""
        return self.noting or bool(self.births)

    def operated(self, *tensors: Any) -> None:
        """Note down which tensors an operation changed, before the call, or change them."""
        if self.seen.entry or not self.running:
            return
        self.operations += 1
        with torch._C.DisableTorchFunction():  # noqa: SLF001 - its only name
            for place, tensor in enumerate(tensors):
                if not isinstance(tensor, Tensor):
                    continue
                at = self.operations, place
                if self.noting:
                    self._changed(tensor, at)
                for name in (name for name, birth in self.births.items() if birth == at):
                    _put(tensor, (self.given or {})[name], exact=self.exact)

    def _changed(self, tensor: Tensor, at: tuple[int, int]) -> None:
        """Remember where a tensor got its contents; it is kept, so that its id stays its own."""
        known = self.born.get(id(tensor))
        version = tensor._version  # noqa: SLF001 - it has no other name
        if known is None or known[1] != version:
            self.born[id(tensor)] = tensor, version, at

    def reference(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The script's function, whose arguments are replaced as those of the call are."""

        def called(*args: Any, **kwargs: Any) -> Any:
            if self.inside or not self.running:
                return function(*args, **kwargs)
            if self.apart and not self.seen.entry:
                return Unread()
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

    def launch(self, name: str, kernel: Any, grid: Any, args: Any, kwargs: Any) -> None:
        """A launch by the script; those by the module's functions are theirs."""
        if self.calling or self.inside or not self.running:
            return
        known = inspect.signature(kernel.fn)
        options = [inspect.Parameter(n, _OPTION) for n in kwargs if n not in known.parameters]

        def idle(*_: Any, **__: Any) -> None:
            """A launch that does nothing."""

        own = [p.replace(kind=_EITHER) for p in known.parameters.values()]
        setattr(idle, "__signature__", inspect.Signature([*own, *options]))  # noqa: B010 - mypy
        if callable(grid):
            bound = inspect.signature(idle).bind(*args, **kwargs)
            bound.apply_defaults()
            grid = grid(dict(bound.arguments))
        sizes = tuple(map(int, grid if isinstance(grid, list | tuple) else (grid,)))
        self.call(name, idle, args, kwargs, sizes)

    def call(
        self,
        name: str,
        function: Callable[..., Any],
        args: Any,
        kwargs: Any,
        grid: tuple[int, ...] | None = None,
    ) -> Any:
        """The call of the module's function, or a launch of its kernel."""
        if self.calling or self.inside or not self.running:
            return function(*args, **kwargs)
        bound = inspect.signature(function).bind(*args, **kwargs).arguments
        found = tensors(bound)
        if not found:
            return function(*args, **kwargs)
        if self.seen.entry:
            self.seen.other = name if name != self.seen.entry else ""
            raise DoneError
        self.inside = True
        self.seen.entry, self.seen.grid = name, grid
        self.seen.values = copied(bound)
        known = {name: self.born.get(id(tensor)) for name, tensor in found.items()}
        self.seen.births = {name: birth[2] for name, birth in known.items() if birth}
        if self.replies is not None:
            return self._replied(self._idle(function, args, kwargs), found, self.replies)
        if self.given is None:
            self.seen.result = copied(self._idle(function, args, kwargs))
            self.called = found
            self.inside = False
            if self.briefly:
                raise DoneError
            return self.seen.result
        kept = {path: [*self._kept(tensor), tensor] for path, tensor in found.items()}
        result = self._idle(function, args, kwargs)
        for path, places in kept.items():
            for place in places:
                _put(place, self.given[path], exact=self.exact)
        return self._filled(result, found)

    def _filled(self, result: Any, found: Mapping[str, Tensor]) -> Any:
        """The module's result, and arguments that it changes, with contents that are recognised."""
        for path in self.updates:
            self.fillers[path] = _filler(found[path], len(self.fillers), exact=self.exact)
            _put(found[path], self.fillers[path], exact=True)
        named = results(result)
        fresh = [n for n, t in named.items() if not any(t is u for u in found.values())]
        for path in fresh:
            self.fillers[path] = _filler(named[path], len(self.fillers), exact=self.exact)
            named[path].data = self.fillers[path].clone()
        self.seen.result = result
        self.inside = False
        return result

    def _replied(
        self, result: Any, found: Mapping[str, Tensor], replies: Mapping[str, Tensor]
    ) -> Any:
        """The module's result with the contents of ``replies``, which arguments get, too."""
        for name, tensor in {**results(result), **found}.items():
            if name in replies:
                with torch._C.DisableTorchFunction(), torch.no_grad():  # noqa: SLF001 - its only name
                    tensor.copy_(replies[name])
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
                    if expected.is_floating_point() and not filler.is_floating_point():
                        self.seen.stepped.add(name)
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
    copy = value.detach().clone().reshape(place.shape).to(place.device)
    place.data = copy if exact else copy.to(place.dtype)


def copied(value: Any) -> Any:
    """The same arguments with their own tensors, in the same layout."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, list | tuple):
        return type(value)(copied(item) for item in value)
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return value


def _filler(like: Tensor, number: int, *, exact: bool) -> Tensor:
    """Small integers, which no cast rounds, and other ones for each ``number`` below 7."""
    made = _integers if like.numel() > _KEPT_ELEMENTS else _kept_integers
    return made(like.shape, like.dtype, like.device, number, exact=exact)


def _integers(
    shape: torch.Size, dtype: torch.dtype, device: torch.device, number: int, *, exact: bool
) -> Tensor:
    del exact  # what watches PyTorch's functions then turns ``dtype`` into doubles
    generator = torch.Generator(device).manual_seed(8 * shape.numel() + number)
    truth = dtype is torch.bool
    drawn = torch.randint(0, 2 if truth else 16, shape, generator=generator, device=device)
    return (drawn if truth else drawn + 16 * (number % 7)).to(dtype)


_kept_integers = lru_cache(maxsize=8)(_integers)


def _same(one: Tensor, other: Tensor) -> bool:
    with torch._C.DisableTorchFunction():  # noqa: SLF001 - it has no other name
        return bool((one.double() == other.to(one.device).double()).all())
