"""TOML files, with positions for errors."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kabuild.base.errors import LoadError, Position, Reason
from kabuild.base.reading import read_plain
from kabuild.rule.attr import PathStep

MOST_LEVELS = 32
MOST_BYTES = 8 << 20
"""The limit of a handwritten file, in bytes."""


@dataclass(frozen=True)
class TomlFile:
    """One TOML file: its name in messages, its text and its values."""

    shown: str
    text: str
    values: Mapping[str, Any] = field(hash=False)

    def position(self, *path: PathStep) -> Position:
        """The position of the part at ``path``, or of the nearest part around it."""
        from kabuild.loading.positions import find  # only for errors

        return Position(self.shown, find(self.text, path))


def read_toml(path: Path, shown: str) -> TomlFile:
    """Read the file at ``path``, which messages call ``shown``.

    Raises LoadError(TOML_SYNTAX) with line, column and the offending line, also for what
    cannot be read, and ``FileNotFoundError``.
    """
    try:
        data = read_plain(path, MOST_BYTES)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise LoadError(
            Reason.MISSING_FILE, f"cannot be read: {error.strerror}", position=Position(shown)
        ) from None
    try:
        text = data.decode().replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise LoadError(
            Reason.TOML_SYNTAX,
            f"byte 0x{data[error.start]:02x} is not UTF-8",
            position=Position(shown, line),
        ) from None
    return parse_toml(text, shown)


def parse_toml(text: str, shown: str) -> TomlFile:
    """A file with this text. Raises LoadError(TOML_SYNTAX), as ``read_toml``."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(str(error), text, shown) from None
    except RecursionError:
        raise _too_deep(shown) from None
    except ValueError as error:  # an integer with more digits than Python converts
        raise _long_integer(error, text, shown) from None
    if not _is_shallow(values):
        raise _too_deep(shown)
    return TomlFile(shown, text, values)


def _is_shallow(values: Mapping[str, Any]) -> bool:
    """Whether values are nested so little that recursion is safe."""
    level: list[Any] = [values]
    for _ in range(MOST_LEVELS):
        inner = (item for item in level if isinstance(item, dict | list))
        level = [v for item in inner for v in (item.values() if isinstance(item, dict) else item)]
        if not level:
            return True
    return False


def _too_deep(shown: str) -> LoadError:
    return LoadError(
        Reason.TOML_SYNTAX,
        "values are nested too deeply",
        position=Position(shown),
        hint=f"at most {MOST_LEVELS} levels",
    )


def _long_integer(error: ValueError, text: str, shown: str) -> LoadError:
    """Python's refusal, with the line of the integer."""
    import re  # only when something is wrong

    most = sys.get_int_max_str_digits()
    match = re.search(rf"\d(?:_?\d){{{most}}}", text)
    if match is None:
        raise error
    return LoadError(
        Reason.TOML_SYNTAX,
        f"an integer has more than {most} digits",
        position=Position(shown, text.count("\n", 0, match.start()) + 1),
    )


def _syntax_error(message: str, text: str, shown: str) -> LoadError:
    """tomllib's message with the line that it refers to."""
    import re  # only when something is wrong

    match = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
    what = message[: match.start()] if match else message
    lines = text.split("\n")
    if match and match[1]:
        line, column = int(match[1]), int(match[2])
    else:
        while len(lines) > 1 and not lines[-1].strip():
            lines.pop()
        line, column = len(lines), len(lines[-1]) + 1
    offending = lines[line - 1].expandtabs(1)
    return LoadError(
        Reason.TOML_SYNTAX,
        f"not TOML: {what[:1].lower()}{what[1:]}",
        position=Position(shown, line, column),
        hint=f"{offending}\n{' ' * (column - 1)}^",
    )
