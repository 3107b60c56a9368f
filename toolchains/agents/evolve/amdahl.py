"""Gives the next turn to the part with the most to gain: Amdahl's law over a shared budget.

A part is a config of one task, or a kernel among several. It takes a share of the whole time at
the start and has a speedup since. A turn goes to the part that takes most now, divided by one more
than the turns on it that did not help: where none helps, turns are shared as the time is. No model
of kernels, only a way to spend turns where time is, and less of them on what resists.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any


class SharesError(ValueError):
    """A file of shares is invalid; the text says why."""


@dataclass(frozen=True)
class Part:
    """One part. ``failed`` counts its turns since the last one that helped."""

    name: str
    share: float
    speedup: float = 1.0
    failed: int = 0

    @property
    def remaining(self) -> float:
        """Its time now, as a share of the whole time at the start."""
        return self.share / self.speedup

    @property
    def hope(self) -> float:
        """What a turn on it may gain: an order among parts, not a forecast."""
        return self.remaining / (1 + self.failed)


def speedup(parts: Sequence[Part]) -> float:
    """The speedup of the whole; time outside all parts does not change."""
    rest = max(0.0, 1.0 - math.fsum(part.share for part in parts))
    return 1.0 / (rest + math.fsum(part.remaining for part in parts))


def most(parts: Sequence[Part], name: str) -> float:
    """The speedup of the whole if one part took no time; infinite if it takes all of it."""
    others = [part for part in parts if part.name != name]
    own = next(part.share for part in parts if part.name == name)
    rest = max(0.0, 1.0 - own - math.fsum(part.share for part in others))
    left = rest + math.fsum(part.remaining for part in others)
    return 1.0 / left if left > 0 else math.inf


def choose(parts: Sequence[Part]) -> Part:
    """The part with the most to gain; of equals, the first by name."""
    return min(parts, key=lambda part: (-part.hope, part.name))


def allot(parts: Sequence[Part], turns: int) -> Counter[str]:
    """The number of turns of each part, if none of the next ``turns`` helps."""
    current = {part.name: part for part in parts}
    found: Counter[str] = Counter()
    for _ in range(turns):
        part = choose(tuple(current.values()))
        found[part.name] += 1
        current[part.name] = replace(part, failed=part.failed + 1)
    return found


def read_shares(path: Path) -> tuple[Part, ...]:
    """The kernels in a file: ``{"softmax": 0.5, "gelu": {"share": 0.3, "speedup": 1.4}}``.

    Raises SharesError, OSError.
    """
    try:
        value = json.loads(path.read_text())
    except ValueError as error:
        raise SharesError(f"{path.name}: not valid JSON: {error}") from error
    if not isinstance(value, dict) or not value:
        raise SharesError(f"{path.name}: not an object of shares by task")
    parts = tuple(_part(path, name, given) for name, given in value.items())
    if math.fsum(part.share for part in parts) > 1.0 + 1e-9:
        raise SharesError(f"{path.name}: the shares add up to more than 1")
    return parts


def _part(path: Path, name: str, given: Any) -> Part:
    told: Mapping[str, Any] = given if isinstance(given, dict) else {"share": given}
    share, gained = told.get("share"), told.get("speedup", 1.0)
    if set(told) - {"share", "speedup"} or not all(map(_is_number, (share, gained))):
        raise SharesError(f"{path.name}: '{name}' has no valid share")
    assert share is not None
    if not (0 < share <= 1 and 0 < gained < math.inf):
        raise SharesError(f"{path.name}: '{name}' has a share outside of 0..1, or no speedup")
    return Part(name, float(share), float(gained))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
