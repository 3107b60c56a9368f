"""Did-you-mean: the nearest known name to a mistyped one."""

from __future__ import annotations

from collections.abc import Iterable


def suggest(name: str, known: Iterable[str], *, quote: str = "'") -> str:
    """A hint such as ``did you mean 'softmax'?``; empty when nothing is near.

    A known name that begins with ``name`` is nearer than one that is spelled alike.
    """
    from difflib import get_close_matches  # only when something is wrong

    names = sorted(known)
    begun = [one for one in names if name and one.startswith(name)]
    near = get_close_matches(name, begun, n=1, cutoff=0.0) or get_close_matches(
        name, names, n=1, cutoff=0.6
    )
    return f"did you mean {quote}{near[0]}{quote}?" if near else ""


def suggest_path(path: str, known: Iterable[str]) -> str:
    """A hint such as ``did you mean '//tasks/hip2hip/softmax'?`` for a mistyped ``//`` path.

    The last component decides: equal anywhere, or alike where the paths are alike as a whole. Long
    common directories alone suggest nothing.
    """
    from difflib import get_close_matches  # only when something is wrong

    last = path.rpartition("/")[2]
    ends = {name: name.rpartition("/")[2] for name in sorted(known)}
    same = [name for name, end in ends.items() if end == last]
    alike = get_close_matches(last, set(ends.values()), n=len(ends) or 1, cutoff=0.5)
    near = get_close_matches(path, same, n=1, cutoff=0.0) or get_close_matches(
        path, [name for name, end in ends.items() if end in alike], n=1, cutoff=0.6
    )
    return f"did you mean '{near[0]}'?" if near else ""
