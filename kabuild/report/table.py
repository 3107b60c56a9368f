"""A table as text. It imports no library, since a null build prints one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

Style = Callable[[str, str], str]
"""A function from a padded cell and its text to the printed form."""

_COLOURS = {"PASS": "32", "FAIL": "31", "REJECTED": "35", "SKIPPED": "33", "INFRA": "36"}


def plain(text: str, _: str) -> str:
    """No colours: for pipes and files."""
    return text


def coloured(text: str, word: str) -> str:
    """ANSI colours by verdict."""
    code = _COLOURS.get(word)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def text_table(
    rows: Sequence[Sequence[str]], style: Style = plain, *, right: Collection[int] = ()
) -> str:
    """Columns of minimal width; those with an index in ``right`` are aligned on the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(
            style(text.rjust(width) if index in right else text.ljust(width), text)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
