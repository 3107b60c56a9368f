"""Tables in Markdown, and how figures are named in them."""

from __future__ import annotations

from collections.abc import Sequence


def spread(values: Sequence[float]) -> float:
    """How far the largest is above the smallest, in percent."""
    return 100 * (max(values) / min(values) - 1)


def short(label: str) -> str:
    """A task's label as tables have it."""
    return label.removeprefix("//tasks/").partition(":")[0]


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows below a head."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
