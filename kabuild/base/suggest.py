"""Did-you-mean: the nearest known name to a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable


def suggest(name: str, known: Iterable[str], *, quote: str = "'") -> str:
    """A hint such as ``did you mean 'softmax'?``; empty when nothing is near."""
    from difflib import get_close_matches  # only when something is wrong

    near = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f"did you mean {quote}{near[0]}{quote}?" if near else ""
