"""The boundary of tasks whose solutions define several functions; all are called.

It is beside the solution in the runner, as a task's ``adapter.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import candidate  # type: ignore[import-not-found]


def several(stem: str, parts: Mapping[str, Sequence[Any]]) -> list[Any]:
    """The result of ``STEM_PART`` for each part; the task's own file has ``reference_PART``.

    Raises AttributeError.
    """
    results = []
    for part, arguments in parts.items():
        ours, theirs = f"{stem}_{part}", f"reference_{part}"
        function = getattr(candidate, ours, None) or getattr(candidate, theirs, None)
        if function is None:
            raise AttributeError(f"the solution has no function '{ours}'")
        results.append(function(*arguments))
    return results
