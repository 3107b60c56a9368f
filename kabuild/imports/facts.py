"""The facts that a capture wrote about a task: foreign data, checked before a lock is made of it.

The task's own code runs where they are written, so it can write anything there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from kabuild.base.bounded_json import bounded_json
from kabuild.base.printing import in_line, shortened
from kabuild.loading.import_lock import LeftOut

_CLASS = re.compile(r"[A-Z][A-Z0-9_]{1,59}")
_ORIGIN = re.compile(r"[0-9a-f]{64}")
_LONGEST_WHY = 1000


@dataclass(frozen=True)
class Facts:
    """What a capture found.

    Attributes:
        origin: digest of what the task computes.
        attrs: attributes of the target.
    """

    origin: str
    attrs: Mapping[str, Any] = field(hash=False)


def left_out(reason: str, why: str) -> LeftOut:
    """The class of a failure, and its sentence as one line that is safe to print."""
    return LeftOut(reason, shortened(in_line(why.strip()), _LONGEST_WHY))


def read_facts(data: bytes, known: Collection[str]) -> Facts | LeftOut:
    """The facts in ``facts.json``; ``known`` are the names of the target's attributes.

    Raises ValueError, TypeError, KeyError or AttributeError for anything that no adapter writes.
    """
    found = bounded_json(data, non_finite=True)  # constants, such as -inf
    if absent := found.get("left_out"):
        reason, why = absent["reason"], absent["why"]
        if not _CLASS.fullmatch(reason):
            raise ValueError("its class is not in capital letters")
        return left_out(reason, why)
    if unknown := sorted(found["attrs"].keys() - known):
        raise ValueError(f"a task has no attribute '{unknown[0][:60]}'")
    if not _ORIGIN.fullmatch(found["origin"]):
        raise ValueError("its origin is not a SHA-256")
    return Facts(found["origin"], found["attrs"])
