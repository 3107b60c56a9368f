"""The page's section on experts that memory bounds, beside copies of as many bytes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from tables import short, table

GOAL = 0.85


def beside_copies(stages: Mapping[str, Any]) -> str:
    """How many experts reach the goal on their largest config, and those that do not."""
    known = {
        (label, config): share
        for label, configs in stages.get("roofline", {}).items()
        for config, share in configs.items()
        if "of_equal_copy" in share
    }
    labels = {label for label, _ in known}
    short_of = sorted(
        (share["of_equal_copy"], label, config, share)
        for (label, config), share in known.items()
        if share["of_equal_copy"] < GOAL
    )
    below = {label for _, label, _, _ in short_of}
    said = (
        f"{len(labels) - len(below)} of {len(labels)} experts whose tensors were counted move them "
        f"at {100 * GOAL:.0f} % or more of the speed of a copy of as many bytes, on their largest "
        "config. Each tensor counts once: what has to be read twice, or has much to compute, "
        "cannot reach it; what reads more than it writes can exceed it. Experts are timed behind "
        "the gate, copies as one graph, with other memory each."
    )
    rows = [
        [short(label), config, *(f"{share[us]:.1f}" for us in ("expert_us", "copy_us")), _told(of)]
        for of, label, config, share in short_of
    ]
    if not rows:
        return f"## Beside copies\n\n{said}"
    head = ("task", "largest config", "expert µs", "copy µs", "share")
    return f"## Beside copies\n\n{said} The others:\n\n{table(head, rows)}"


def _told(share: float) -> str:
    """In percent; what is below the goal does not look as if it reached it."""
    return f"{math.floor(100 * share)} %"
