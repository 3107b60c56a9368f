"""The options of a command as one frozen dataclass: each field is a flag, and has its type.

    @dataclass(frozen=True, kw_only=True)
    class Chosen(TargetFlags, WhereFlags):
        as_json: bool = flag("--json", is_flag=True, help="Print JSON on stdout.")

    @click.command("show")
    @takes(Chosen)
    def command(options: Chosen) -> None: ...

A command offers exactly the flags of its class; ``tests/cli/test_heeded_flags.py`` checks that it
reads each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, TypeVar

import click

_PARAMETER = "parameter"
T = TypeVar("T", bound="Options")


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of one call of a command."""


def flag(*names: str, **settings: Any) -> Any:
    """A field that is the flag ``names``; ``settings`` are those of ``click.option``."""
    return field(
        metadata={_PARAMETER: lambda field_name: click.option(*names, field_name, **settings)}
    )


def argument(**settings: Any) -> Any:
    """A field that is a positional argument; ``settings`` are those of ``click.argument``."""
    return field(metadata={_PARAMETER: lambda field_name: click.argument(field_name, **settings)})


def takes(kind: type[T]) -> Callable[[Callable[[T], None]], Callable[..., None]]:
    """Give a command the parameters that ``kind`` declares, and call it with one ``kind``.

    Help lists them in the order of the base classes, then those of ``kind`` itself.
    """

    def decorate(function: Callable[[T], None]) -> Callable[..., None]:
        @wraps(function)
        def called(**values: Any) -> None:
            function(kind(**values))

        for add in reversed([*_parameters(kind)]):
            add(called)
        return called

    return decorate


def _parameters(kind: type[Options]) -> Iterator[Callable[[Callable[..., None]], object]]:
    rest = dict(kind.__dataclass_fields__)
    for base in (*kind.__mro__[1:], kind):
        for name in vars(base).get("__annotations__", ()):
            found = rest.pop(name, None)
            if found and _PARAMETER in found.metadata:
                yield found.metadata[_PARAMETER](name)
        yield from vars(base).get("unbound", ())
