"""Finds inline assembly in a compiler's output, and refuses what is not allowed.

Kernels may have it. In host code it is refused, and so are directives that read files anywhere:
afterwards, nothing would show which files went into the library.
"""

from __future__ import annotations

import re

_OF_THE_HOST = re.compile(r"\s*#APP|\s*# Start of file scope inline assembly")
_READS = re.compile(r".*\.(incbin|include|macro|rept?|ire?pc?)\b", re.IGNORECASE)
"""What reads a file, and what can put a name together."""
_TEXT = re.compile(r'\s*\.(?:asci[iz]|string)\s+"(?:[^"\\]|\\.)*"\s*')
_FILE = re.compile(r'\s*\.file\s+(\d+)\s+(?:"[^"]*"\s+)?"([^"]*)"(?:\s.*)?')
_PLACE = re.compile(r"\s*\.loc\s+(\d+) (\d+) (\d+)\b.*")


def refusal_on_host(assembly: str, main: str) -> str:
    """A compiler's message about the first inline assembly in code of the host; empty if none.

    ``assembly`` was written with comments; with line tables the message names the line.
    ``main`` is the source to name where it has none.
    """
    text = "inline assembly in host code; only kernels and __device__ functions may have it"
    return _first(_OF_THE_HOST, assembly, main, text)


def refusal_anywhere(assembly: str, main: str) -> str:
    """The first refusal in host code whose compiler writes names as they are; empty if none."""
    return refusal_on_host(assembly, main) or _first(
        _READS, assembly, main, "a name that is a directive of the assembler"
    )


def refusal_on_device(assembly: str, main: str) -> str:
    """A compiler's message about the first directive that may read a file; empty if none does."""
    return _first(_READS, assembly, main, "directive in inline assembly that can read files")


def _first(pattern: re.Pattern[str], assembly: str, main: str, text: str) -> str:
    files, place = {}, f"{main}:1:1"
    for line in assembly.splitlines():
        if found := _FILE.fullmatch(line):
            files[found[1]] = found[2]
        elif found := _PLACE.fullmatch(line):
            place = f"{files.get(found[1], main)}:{found[2]}:{max(1, int(found[3]))}"
        elif pattern.match(line) and not _TEXT.fullmatch(line):
            return f"{place}: error: {text}"
    return ""
