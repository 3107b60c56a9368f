"""How many examples of a property are drawn: each run of ``make test`` draws others."""

from __future__ import annotations

from tests.tasks.chosen import every

SHARE = 3


def examples(most: int) -> int:
    """``most`` in ``make test-all``, and a third of them in ``make test``."""
    return most if every() else -(-most // SHARE)
