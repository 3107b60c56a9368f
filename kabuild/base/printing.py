"""Foreign text, made safe to print: it cannot act on a terminal or a CI service.

A candidate, a bundle or a directory may hold any character. ``escaped`` shows control and invisible
characters as escapes; ``marked`` is for text of several lines, none of which may look like one of
kabuild's own. The command line prints everything through ``guarded``, so nothing depends on reports
to call them.
"""

from __future__ import annotations

import re

MARK = "| "
"""Begins each line of a text that somebody else wrote."""

_ACTING = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls, apart from tabs and line feeds
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # change the direction of text
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164"
    "\ufeff\uffa0\ufff9-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"  # invisible
    "\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U0001343f"
    # these enclose or join what follows
    "\u2028\u2029"  # end lines in some programs
    "\ud800-\udfff"  # surrogates: bytes that are not UTF-8
)
_CHARACTER = re.compile(f"[{_ACTING}]")
_COMMAND = re.compile(r"##(?=[\w.-]*\[)")
"""Of GitHub, Azure (``##vso[``) and TeamCity, which find them anywhere in a line."""
_LINE_COMMAND = re.compile(r"^([^\S\n]*)(?=:)", re.MULTILINE)
"""Of GitHub: ``::set-env`` at the start of a line, or after spaces; maybe in two writes."""
_SEQUENCE = re.compile(r"(\x1b\[[0-9;?]*[ABCDGHJKhlm]|[\r\b])")
"""Colours and cursor movements, which kabuild itself sends to a terminal."""


def escaped(text: str) -> str:
    r"""``text`` with control and invisible characters as ``\u001b``, as in JSON.

    Line feeds stay, tabs become spaces, and a carriage return before a line feed goes.
    """
    text = text.replace("\r\n", "\n").expandtabs()
    return _COMMAND.sub(r"#\\u0023", _CHARACTER.sub(_escape, text))


def in_line(text: str) -> str:
    """``text`` escaped, in one line."""
    return escaped(" ".join(text.split("\n")))


def marked(text: str) -> str:
    """``text`` escaped, with ``MARK`` before each line. Empty stays empty."""
    lines = escaped(text).split("\n") if text else []
    return "\n".join(f"{MARK}{line}".rstrip() for line in lines)


def shortened(text: str, most: int = 400) -> str:
    """``text``, cut to ``most`` characters, for messages about what somebody else wrote."""
    return text if len(text) <= most else f"{text[:most]}..."


def guarded(text: str, *, terminal: bool, at_start: bool) -> str:
    """What the command line prints of ``text``.

    A ``terminal`` may get colours and movements of the cursor; ``at_start`` says that only spaces
    stand before ``text`` in its line.
    """
    if terminal:
        parts = _SEQUENCE.split(text)
        parts[::2] = [_COMMAND.sub(r"#\\u0023", _CHARACTER.sub(_escape, p)) for p in parts[::2]]
        return "".join(parts)
    safe = escaped(text)
    head, mark, rest = ("", "", safe) if at_start else safe.partition("\n")
    return head + mark + _LINE_COMMAND.sub(rf"\1{MARK}", rest) if at_start or mark else safe


def _escape(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
