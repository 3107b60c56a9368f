"""The part of pytest with which benchmarks declare tests, which ``pytests`` calls."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from types import SimpleNamespace
from typing import Any, NoReturn

Function = Callable[..., Any]
_SETTINGS = "imported_settings"


class Skipped(BaseException):
    """A test does not apply."""


class _Marks:
    def __getattr__(self, name: str) -> Function:
        """A mark that changes nothing, with arguments or without."""
        return _unchanged

    @staticmethod
    def parametrize(names: str | Sequence[str], values: Iterable[Any], **_: Any) -> Function:
        """Record the values of some parameters, for each combination with others."""
        keys = [n.strip() for n in names.split(",")] if isinstance(names, str) else [*names]

        def marked(function: Function) -> Function:
            rows = [(value,) if len(keys) == 1 else value for value in values]
            mine = [dict(zip(keys, row, strict=True)) for row in rows]
            others = getattr(function, _SETTINGS, [{}])
            setattr(function, _SETTINGS, [a | b for a, b in itertools.product(others, mine)])
            return function

        return marked


mark = _Marks()


def settings(function: Function) -> list[dict[str, Any]]:
    """The parameters that a test is called with, once each."""
    found: list[dict[str, Any]] = getattr(function, _SETTINGS, [{}])
    return found


def fixture(*args: Any, **_: Any) -> Any:
    """A fixture is a function that no test is given."""
    return _unchanged(*args)


def param(*values: Any, **_: Any) -> Any:
    """The values of one combination."""
    return values[0] if len(values) == 1 else values


def skip(reason: str = "", **_: Any) -> NoReturn:
    """Give up on a test. Raises Skipped."""
    raise Skipped(reason)


def fail(reason: str = "", **_: Any) -> NoReturn:
    """Fail a test."""
    raise AssertionError(reason)


def request(name: str) -> SimpleNamespace:
    """The fixture `request`, as far as tests of benchmarks read it."""
    return SimpleNamespace(node=SimpleNamespace(name=name))


def _unchanged(*args: Any, **_: Any) -> Any:
    if len(args) == 1 and callable(args[0]):
        return args[0]
    return lambda function: function
