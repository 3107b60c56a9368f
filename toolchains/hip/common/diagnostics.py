"""Maps the compiler's messages to the source as its author wrote it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from faults import MOST_TEXT, Position, describe, shortened
from sources import Sources

_MESSAGE = re.compile(
    r"(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<kind>fatal error|error|warning|note): (?P<text>.*)"
)


@dataclass(frozen=True)
class _Message:
    file: str
    line: int
    column: int
    kind: str
    text: str


def translate(messages: str, sources: Sources, prefixes: Sequence[str]) -> str:
    """Rewrite the places in a compiler's messages, and show the original lines.

    An error in one of our or the system's headers is moved to the place in the source that led
    there, where the compiler names it in a note. ``prefixes`` are left out of headers' paths.
    Messages that name no place are shown only when there are no others. Many are cut short.
    """
    parsed = [_parse(line) for line in messages.splitlines()]
    groups: list[list[_Message]] = []
    for message in parsed:
        if message is None:
            continue
        if message.kind == "note" and groups:
            groups[-1].append(message)
        else:
            groups.append([message])
    errors = [group for group in groups if group[0].kind == "error"]
    if not errors:
        return shortened(messages.strip())
    shown, length = list[str](), 0
    for group in errors:
        for text in _show(group, sources, prefixes):
            shown.append(text)
            length += len(text)
            if length > MOST_TEXT:
                return shortened("\n".join(shown))
    return "\n".join(shown)


def _parse(line: str) -> _Message | None:
    match = _MESSAGE.fullmatch(line)
    if match is None:
        return None
    return _Message(
        file=posixpath.normpath(match["file"]),
        line=int(match["line"]),
        column=int(match["column"] or 1),
        kind=match["kind"].removeprefix("fatal "),
        text=match["text"],
    )


def _show(group: Sequence[_Message], sources: Sources, prefixes: Sequence[str]) -> Iterator[str]:
    head, notes = group[0], list(group[1:])
    place = head
    if head.file not in sources.files:
        place = next((note for note in notes if note.file in sources.files), head)
    if place.file not in sources.files:
        yield f"{_short(head.file, prefixes)}:{head.line}: error: {head.text}"
        return
    yield describe(_original(place, sources), "error", head.text)
    for note in notes:
        if note is not place and note.file in sources.files:
            yield describe(_original(note, sources), "note", note.text)


def _original(message: _Message, sources: Sources) -> Position:
    return sources.files[message.file].original(message.line, message.column)


def _short(path: str, prefixes: Sequence[str]) -> str:
    for prefix in prefixes:
        path = path.removeprefix(prefix)
    return path
