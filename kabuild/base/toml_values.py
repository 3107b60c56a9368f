"""The values of TOML files that programs write, or few people do, with the line of an error.

``loading.toml_file`` reads those that people write daily, and shows more.
"""

from __future__ import annotations

import re
from typing import Any

_PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class TomlError(ValueError):
    """What is wrong with a text, and in which line; 0 if in none."""

    def __init__(self, what: str, line: int) -> None:
        super().__init__(what)
        self.line = line


def toml_values(data: bytes) -> dict[str, Any]:
    """The values in a file with this content. Raises TomlError."""
    import tomllib  # a user without settings needs it not

    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise TomlError(f"byte 0x{data[error.start]:02x} is not UTF-8", line) from None
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TomlError("values are nested too deeply", 0) from None
    except ValueError as error:
        place = _PLACE.search(str(error))
        what = str(error)[: place.start()] if place else str(error)
        end = text.rstrip().count("\n") + 1
        line = int(place[1] or end) if place else 0
        raise TomlError(f"not TOML: {what[:1].lower()}{what[1:]}", line) from None
