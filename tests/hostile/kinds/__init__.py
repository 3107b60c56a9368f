"""What is tried: each kind makes one sort of input and knows what must come of it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.hostile.kinds import (
    archives,
    declarations,
    disks,
    flags,
    judging,
    kills,
    labels,
    peers,
    stores,
    verdicts,
    worlds,
)
from tests.hostile.kinds.kind import Kind

KINDS: Mapping[str, Kind] = {
    kind.name: kind
    for module in (
        *(flags, labels, declarations, archives, stores, verdicts),
        *(worlds, disks, peers, judging, kills),
    )
    for kind in module.KINDS
}
