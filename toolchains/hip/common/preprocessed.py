"""Checks a source with expanded macros for directives that the next tool would obey.

The check of a source sees what its author wrote. Macros can make more: pragmas, by ``_Pragma`` of a
composed text, and a ``#`` at the beginning of a line, which is a directive when the result is read
again.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from sources import MAIN, allows_pragma

_MARKER = re.compile(r'#(?:line)? (\d+) "((?:[^"\\]|\\.)*)".*')
PRAGMA = "hip_pragma"
"""What is put in place of ``_Pragma``, so that a preprocessor shows what it would obey."""
_SHOWN = re.compile(rf'\b{PRAGMA}\s*\(\s*L?"((?:[^"\\]|\\.)*)"\s*\)')
_DIRECTIVE = re.compile(r"\s*(?:#|%:|\?\?=)\s*(\w*)\s*(.*)")


def refused_directive(
    text: str, cwd: Path, allowed: Callable[[Sequence[str]], bool] = allows_pragma
) -> str:
    """A compiler's message about the first directive that may not be there; empty if none is.

    ``text`` is what a preprocessor wrote of a source in ``cwd``. Headers from elsewhere are not
    looked at. ``allowed`` tells of the words of a pragma whether it may be there.
    """
    for file, line, content in _lines(text, cwd):
        pragmas = [shown[1].replace('\\"', '"').split() for shown in _SHOWN.finditer(content)]
        found = _DIRECTIVE.fullmatch(content)
        if found and (found[1] != "pragma" or not content.startswith("#")):
            return f"{file}:{line}:1: error: a macro expands to a directive: '#{found[1]}'"
        pragmas += [found[2].split()] if found else []
        for words in pragmas:
            if words[:1] != ["omp"] and not allowed(words):
                return (
                    f"{file}:{line}:1: error: a macro expands to a pragma: '{' '.join(words[:2])}'"
                )
    return ""


def refused_file(read: str, options: Sequence[str], prefixes: Sequence[str]) -> str:
    """A compiler's message about the first file that is not where a source may look.

    ``read`` is what a preprocessor wrote for ``make``; ``options`` are those of the compiler.
    """
    allowed = [option.removeprefix("-I") for option in options if option.startswith("-I/")]
    allowed += [b for a, b in pairwise(options) if a == "-isystem"]
    allowed += prefixes
    for name in read.replace("\\\n", " ").partition(": ")[2].split():
        if name.startswith("/") and not posixpath.normpath(name).startswith(tuple(allowed)):
            return f"{MAIN}:1:1: error: it reads '{name}', which is not a header of the compiler"
    return ""


def _lines(text: str, cwd: Path) -> Iterator[tuple[str, int, str]]:
    """The lines that are not markers, of files in ``cwd``, with their file and number."""
    # Most of a hundred thousand lines come from headers: none of them may cost much.
    file, number, inside = "", 0, {"": True}
    for line in text.splitlines():
        if line.startswith("#") and (marker := _MARKER.fullmatch(line)):
            file, number = posixpath.normpath(marker[2]), int(marker[1])
            if file not in inside:
                inside[file] = (cwd / file).is_relative_to(cwd)
        else:
            if inside[file]:
                yield file, number, line
            number += 1
