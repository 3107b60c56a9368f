"""Tables as text. This module imports no library, since a null build prints a table."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

Style = Callable[[str, str], str]
"""A function from a padded cell and its text to the printed form."""

GAP = "  "
_LEAST = 8
"""The least width of a shortened cell."""

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
        GAP.join(
            style(text.rjust(width) if index in right else text.ljust(width), text)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def render_columns(
    rows: Sequence[Sequence[str]], width: int, *, spare: Sequence[int] = (), cut: int = -1
) -> list[str]:
    """The rows as lines of at most ``width`` columns, if possible.

    While the lines are too long, the columns ``spare`` are left out one by one, in order; then the
    cells of column ``cut`` are shortened. ``rows`` have one length, and a header first.
    """
    shown = list(range(len(rows[0])))
    for column in spare:
        if _width(rows, shown) > width:
            shown.remove(column)
    over = _width(rows, shown) - width
    if over > 0 and cut in shown:
        most = max(_LEAST, max(len(row[cut]) for row in rows) - over)
        rows = [[_cut(t, most) if i == cut else t for i, t in enumerate(row)] for row in rows]
    widths = {column: max(len(row[column]) for row in rows) for column in shown}
    return [GAP.join(row[c].ljust(widths[c]) for c in shown).rstrip() for row in rows]


def _width(rows: Sequence[Sequence[str]], shown: Sequence[int]) -> int:
    widths = [max(len(row[column]) for row in rows) for column in shown]
    return sum(widths) + len(GAP) * (len(widths) - 1)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 3]}..."
