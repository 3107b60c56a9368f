"""Restores the judge's process after calls of a task's code, and reports what they changed."""

from __future__ import annotations

import builtins
import sys
import time
from types import TracebackType
from typing import Self

from truth.process_state import Arithmetic, Everything, put_back

EVERY_SECONDS = 0.05
"""The time between two checks of everything."""

_BUILTINS = builtins.__dict__
_monotonic = time.monotonic
_gettrace, _settrace = sys.gettrace, sys.settrace
_getprofile, _setprofile = sys.getprofile, sys.setprofile


class Keeper:
    """Keeps the process as it is through calls of one task's code.

    The settings that arithmetic depends on are checked after each call. Everything is checked
    after a ``careful`` call and every ``EVERY_SECONDS``, since that takes longer than most calls
    on a device. Changes in between are reported by the next check, with the places of all calls
    since the last one.
    """

    def __init__(self) -> None:
        self._everything: Everything | None = None
        self._places: list[str] = []
        self._looked = _monotonic()
        _KEEPERS.append(self)

    def call(self, place: str, *, careful: bool) -> Kept:
        """A context for one call; ``place`` names it in messages: ``reference.py:6: f()``."""
        if place not in self._places:
            self._places.append(place)
        return Kept(self, place, careful=careful)

    def begin(self) -> None:
        """Record the state of everything, unless the last record is still unchecked."""
        if self._everything is None:
            self._everything = Everything()

    def look(self, *, careful: bool = True) -> tuple[list[str], list[str]]:
        """Restore everything, if it is time; return what is lost, and what the task did wrong."""
        before = self._everything
        if before is None or not (careful or _monotonic() >= self._looked + EVERY_SECONDS):
            return [], []
        self._everything = None
        found = before.put_back()
        self._looked = _monotonic()
        return found

    def place(self) -> str:
        """The call or calls that may have caused the last finding."""
        places, self._places = self._places, []
        return " or ".join(places)

    def settle(self) -> None:
        """Forget the places of calls that changed nothing."""
        if self._everything is None:
            self._places.clear()


class Kept:
    """A context whose body must leave the process as it was; ``complaint`` says what it changed.

    A ``crippled`` process cannot go on, and may not even be able to exit cleanly.
    Python's builtins are restored before any of them is looked up.
    """

    def __init__(self, keeper: Keeper, place: str, *, careful: bool) -> None:
        self.complaint, self.crippled = "", False
        self._keeper = keeper
        self._place = place
        self._careful = careful

    def __enter__(self) -> Self:
        self._builtins = _BUILTINS.copy()
        self._traced = _gettrace(), _getprofile()
        self._arithmetic = Arithmetic()
        self._keeper.begin()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if _gettrace() is not self._traced[0]:
            _settrace(self._traced[0])
        if _getprofile() is not self._traced[1]:
            _setprofile(self._traced[1])
        after = _BUILTINS.copy()
        _BUILTINS.update(self._builtins)
        lost, left = self._keeper.look(careful=self._careful)
        own = [*put_back("builtins", self._builtins, after), *self._arithmetic.put_back()]
        self.crippled = bool(lost)
        if own and not lost:
            self.complaint = f"{self._place} {own[0]}"
        elif found := [*lost, *left]:
            self.complaint = f"{self._keeper.place()} {found[0]}"
        self._keeper.settle()


def last_look() -> str:
    """What calls have changed since the last check, with their places; empty if nothing."""
    for keeper in _KEEPERS:
        lost, left = keeper.look()
        if found := [*lost, *left]:
            return f"{keeper.place()} {found[0]}"
    return ""


_KEEPERS: list[Keeper] = []
