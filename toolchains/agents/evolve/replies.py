"""The kernel in a model's reply: exactly one code block with the whole file."""

from __future__ import annotations

import re

MOST_BYTES = 1 << 20
_FENCE = re.compile(r"^(`{3,}|~{3,})[ \t]*([\w+.-]*)[ \t]*$")


class ReplyError(ValueError):
    """A reply has no usable kernel; the text is for the model."""


def read_proposal(text: str, *, is_cut: bool = False) -> str:
    """The kernel that a reply proposes. Raises ReplyError."""
    if is_cut:
        raise ReplyError("the reply was cut off at its limit of tokens: write less around the code")
    blocks = _blocks(text)
    if not blocks:
        raise ReplyError("the reply has no block of code: put the whole file between ``` lines")
    if len(blocks) > 1:
        raise ReplyError(f"the reply has {len(blocks)} blocks of code: write one, the whole file")
    source = blocks[0]
    if not source.strip():
        raise ReplyError("the block of code is empty: write the whole file")
    if "\0" in source:
        raise ReplyError("the block of code has a zero byte")
    try:
        size = len(source.encode())
    except UnicodeEncodeError:
        raise ReplyError("the block of code is not text") from None
    if size > MOST_BYTES:
        raise ReplyError(f"the block of code has more than {MOST_BYTES} bytes")
    return source


def _blocks(text: str) -> list[str]:
    """The content of all fenced blocks. Raises ReplyError for an unterminated one."""
    blocks: list[str] = []
    fence, inside = "", list[str]()
    for line in text.splitlines():
        match = _FENCE.match(line.rstrip())
        if not fence and match:
            fence, inside = match[1], []
        elif fence and match and not match[2] and match[1].startswith(fence):
            blocks.append("\n".join(inside) + "\n")
            fence = ""
        elif fence:
            inside.append(line)
    if fence:
        raise ReplyError("the block of code does not end: close it with a ``` line")
    return blocks
