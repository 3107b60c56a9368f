"""Finds operations whose result depends on an order that a GPU chooses.

Numbers that are added to one place are rounded in another order each time, and of several values
that are written to one place any may remain. Inputs that are drawn so cannot be drawn again. The
CPU has one order, so two draws of one seed agree there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from truth.dispatch import UncompiledMode

_ORDERLESS = frozenset({"amax", "amin"})
"""Reductions that give the same in any order."""


def chosen(work: Callable[[], object]) -> str:
    """What PyTorch's first such operation does while ``work`` runs; empty if there is none."""
    watch = _Watch()
    with watch:
        work()
    return watch.found


class _Watch(UncompiledMode):  # type: ignore[no-untyped-call]  # PyTorch has no types
    """Looks at each operation and its arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.found = ""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        given = _Given(function, args, kwargs or {})
        if not self.found and given.adds_in_any_order():
            self.found = f"{given.name}() adds several numbers to one place"
        made = function(*args, **(kwargs or {}))
        if not self.found and given.wrote_in_any_order(made):
            self.found = f"{given.name}() writes several values to one place"
        return made


class _Given:
    """An operation's arguments by their names in PyTorch's schema."""

    def __init__(self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.name = str(function.overloadpacket.__name__)
        self._plain = self.name.strip("_")
        names = [argument.name for argument in function._schema.arguments]  # noqa: SLF001
        self._named = {**dict(zip(names, args, strict=False)), **kwargs}

    def adds_in_any_order(self) -> bool:
        """Whether numbers that sums round meet in one place; whole ones are exact in any order."""
        named = self._named
        added = next((named[n] for n in ("src", "source", "values", "weights") if n in named), None)
        if not self._adds() or added is None or not _is_rounded(added):
            return False
        hits = self._hits()
        return hits.numel() > 0 and int(hits.max()) > 1

    def _adds(self) -> bool:
        named = self._named
        if self._plain in {"scatter_reduce", "index_reduce", "scatter"}:
            return named.get("reduce", "amax") not in _ORDERLESS
        if self._plain in {"index_put", "index_put_impl", "put"}:
            return bool(named.get("accumulate", False))
        return self._plain in {"scatter_add", "index_add", "bincount"}

    def _hits(self) -> Tensor:
        """How many numbers each place gets."""
        named, into = self._named, self._named["self"]
        if self._plain == "bincount":
            return torch.bincount(into)
        held = torch.zeros(into.shape, dtype=torch.int32, device=into.device)
        one = torch.ones((), dtype=torch.int32, device=into.device)
        if "indices" in named:
            hits: Tensor = torch.ops.aten.index_put(held, named["indices"], one, True)  # noqa: FBT003
            return hits
        index = named["index"]
        if self._plain.startswith("scatter"):
            return held.scatter_add(named["dim"], index, one.expand(index.shape))
        if self._plain == "put":
            return held.put(index, one.expand(index.shape), accumulate=True)
        return torch.bincount(index.flatten())

    def wrote_in_any_order(self, made: Any) -> bool:
        """Whether some value that was written is not there, since another one is."""
        named = self._named
        if self._adds() or named.get("reduce") or not isinstance(made, Tensor):
            return False
        if self._plain == "scatter" and isinstance(named.get("src"), Tensor):
            index = named["index"]
            part = named["src"][tuple(map(slice, index.shape))]
            return _differ(made.gather(named["dim"], index), part)
        if self._plain in {"index_put", "index_put_impl"}:
            return _differ(torch.ops.aten.index(made, named["indices"]), named["values"])
        if self._plain == "index_copy":
            return _differ(made.index_select(named["dim"], named["index"]), named["source"])
        return self._plain == "put" and _differ(made.take(named["index"]), named["source"])


def _is_rounded(added: Any) -> bool:
    """Whether sums of these numbers are rounded."""
    if not isinstance(added, Tensor) or added.is_complex():
        return True
    return added.is_floating_point() and bool((added != added.round()).any())


def _differ(found: Tensor, written: Tensor) -> bool:
    same = (found == written) | (found.isnan() & written.isnan())
    return not bool(same.all())
