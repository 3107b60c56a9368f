"""The faults of compiling HIP: of the source, or of the toolchain."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MOST_TEXT = 64 << 10
"""Characters of messages that are kept: a source can have a compiler say any amount."""
_MOST_LINE = 1000
"""Characters of a line that is shown: it may be the whole source, once for each message."""


@dataclass(frozen=True, order=True)
class Position:
    """A place in a source as its author wrote it; lines and columns count from 1."""

    path: str
    line: int
    column: int


class SourceFault(Exception):  # noqa: N818 (a fault of the source, beside those of the tool chain)
    """The source is wrong. The text is complete: ``file:line:column: error: …`` and more."""


class ToolchainFault(Exception):  # noqa: N818
    """The compiler or linker is absent or broke; the source is not to blame."""


class ToolDied(ToolchainFault):
    """A tool died of a signal."""

    def __init__(self, tool: str, signal: int) -> None:
        super().__init__(f"{tool} died of signal {signal}")
        self.signal = signal


def source_fault(position: Position, kind: str, message: str) -> SourceFault:
    """One finding with the line and a caret. ``kind`` is ``error`` or ``unsupported``."""
    return SourceFault(describe(position, kind, message))


def describe(position: Position, kind: str, message: str) -> str:
    """``file:line:column: kind: message``, the original line, and a caret below its column."""
    head = f"{position.path}:{position.line}:{position.column}: {kind}: {message}"
    text = _line(position)
    if text is None or len(text) > _MOST_LINE:
        return head
    indent = "".join(c if c == "\t" else " " for c in text[: position.column - 1])
    return f"{head}\n  {text}\n  {indent}^"


def _line(position: Position) -> str | None:
    try:
        lines = Path(position.path).read_text("utf-8", "replace").split("\n")
    except OSError:
        return None
    return lines[position.line - 1] if 0 < position.line <= len(lines) else None


def shortened(text: str, most: int = MOST_TEXT) -> str:
    """The beginning of a long text, which says that there was more."""
    if len(text) <= most:
        return text
    return f"{text[:most]}\n... the rest, {len(text) - most} characters, is left out"
