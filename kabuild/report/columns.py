"""Tables of texts that fit the width of a terminal."""

from __future__ import annotations

from collections.abc import Sequence

GAP = "  "
_LEAST = 8
"""The least width of a shortened cell."""


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
