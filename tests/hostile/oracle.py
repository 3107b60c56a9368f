"""What holds for every call of the program, whatever it was given."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from kabuild.base.errors import ExitCode
from tests.hostile.call import Call, Ended

CODES = {int(code) for code in ExitCode} - {int(ExitCode.INTERNAL)}
MEMORY = 1 << 30
_TRACE = re.compile(
    r"^Traceback \(most recent call last\)|Exception ignored in|Fatal Python error", re.MULTILINE
)
_FRAME = re.compile(r'File "[^"]*/(kabuild/[^"]+)", line (\d+)')
_PLACE = re.compile(
    r"^(error|Error|warning|Usage|interrupted|\S.*:\d+|.*(WORKSPACE|BUILD|lock|config)\.toml)"
    r"|^ *\[\d+/",
    re.MULTILINE,
)
_COMMAND = re.compile(r"^\s*(::|##\[|##vso\[)", re.MULTILINE)
_NEEDS_WORDS = {1, 2, 4, 7, 36, 45}


@dataclass(frozen=True)
class Rules:
    """What is different for one kind of call.

    Attributes:
        silent: it cannot say anything, since its streams are broken.
        quotes: what it quotes may hold a traceback that is not its own.
        binary: its stdout may be an archive, which was asked for there.
        killed: it may end by this signal.
        memory: bytes that it may hold.
        codes: the codes with which it may end; all that are documented where empty.
    """

    silent: bool = False
    quotes: bool = False
    binary: bool = False
    killed: int = 0
    memory: int = MEMORY
    codes: frozenset[int] = frozenset()


def faults(call: Call, ended: Ended, rules: Rules) -> Iterator[tuple[str, str]]:
    """What is wrong with how a call ended: a name for the fault, and its detail."""
    text = ended.err.decode(errors="replace") if rules.binary else ended.text
    if ended.hung:
        yield f"hung: {_where(text)}", text
        return
    if ended.memory > rules.memory:
        yield "took too much memory", f"{ended.memory >> 20} MiB"
    if _TRACE.search(text) and not rules.quotes:
        yield f"traceback: {_last_frame(text)}", text
    elif "internal error" in text:
        yield f"internal error: {_last_frame(text)}", text
    elif ended.code not in CODES and ended.code != -rules.killed:
        yield f"exit code {ended.code}: {_first_line(text)}", text
    elif rules.codes and ended.code not in rules.codes:
        yield f"unexpected exit code {ended.code}: {_first_line(text)}", text
    if rules.silent:
        return
    if ended.code in _NEEDS_WORDS and not text.strip():
        yield f"silent failure: {ended.code}", ""
    elif (
        ended.code in _NEEDS_WORDS
        and not ended.out
        and not _PLACE.search(ended.err.decode(errors="replace"))
    ):
        yield f"error without a place: {_first_line(text)}", text
    yield from _foreign(text)


def _foreign(text: str) -> Iterator[tuple[str, str]]:
    """Terminals and CI systems act on some of what is printed."""
    bad = {char for char in text if _acts(char)}
    if bad:
        line = next(line for line in text.split("\n") if bad & set(line))
        yield f"prints control characters: {_words(line)}"[:60], ascii(line)
    if _COMMAND.search(text):
        line = next(line for line in text.splitlines() if _COMMAND.match(line))
        yield "prints a CI command", line


def _acts(char: str) -> bool:
    return (
        char != "\n" and char != "\ufffd" and unicodedata.category(char) in {"Cc", "Cf", "Zl", "Zp"}
    )


def _where(text: str) -> str:
    """The innermost frame of the main thread that is kabuild's, as faulthandler tells it."""
    _, _, main = text.rpartition("Thread 0x")
    frames = re.findall(r'File "[^"]*/(kabuild/[^"]+)", line (\d+) in (\w+)', main or text)
    return " ".join(frames[0]) if frames else "?"


def _last_frame(text: str) -> str:
    """Where it happened, and what: the same for the same fault."""
    frames = _FRAME.findall(text)
    where = ":".join(frames[-1]) if frames else "?"
    lines = [
        line
        for line in text.splitlines()
        if re.match(r"[A-Za-z_.]*(Error|Exception|Warning|Interrupt)", line)
    ]
    return f"{where} {_shape(lines[-1])}" if lines else where


def _first_line(text: str) -> str:
    return next((_shape(line) for line in text.splitlines() if line.strip()), "")


def _words(line: str) -> str:
    """The plain words that a line begins with: whose line it is."""
    return " ".join(re.findall(r"[a-zA-Z-]{3,}", line)[:3])


def _shape(line: str) -> str:
    """A line without what differs from case to case."""
    line = re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", line)
    return re.sub(r"[0-9a-f]{8,}|\d+", "#", ascii(line))[:120]
