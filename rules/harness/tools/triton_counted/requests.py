"""The memory requests of one program's warps in one access, one element per lane.

Triton's compiler decides which lane takes which elements. It gives neighbours in memory to
neighbouring lanes. These requests do the same: lanes take a block's elements along the axis with
the smallest step in memory first, then along the axis with the next larger step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Addresses = npt.NDArray[np.uint64]
Totals = npt.NDArray[np.int64]

FIELDS = 11
"""The number of fields of ``analyze.totals.Totals``; they are in its order."""

MOST = np.array([8, 10])
"""The fields that hold the maximum over requests; all others are sums."""

_NONE = np.uint64(2**64 - 1)
SECTOR_BITS = 5
"""The lowest bits of an address: its place within a sector of 32 bytes."""


def in_lanes(addresses: Addresses, mask: Any) -> tuple[Addresses, npt.NDArray[np.bool_]]:
    """The addresses of a block in the order in which lanes take them, and which are active.

    ``addresses`` has the block's shape; ``mask`` (bool) broadcasts to it. Both results are flat.
    """
    active = np.broadcast_to(mask, addresses.shape)
    origin = (0,) * addresses.ndim
    steps = []
    for axis, size in enumerate(addresses.shape):
        if size < 2:
            steps.append(0)
            continue
        beside = tuple(int(axis == other) for other in range(addresses.ndim))
        steps.append(abs(int(addresses[beside]) - int(addresses[origin])))
    # Along an axis with step 0 the same elements repeat: lanes take it last.
    order = sorted(range(addresses.ndim), key=lambda axis: (steps[axis] > 0, -steps[axis]))
    return addresses.transpose(order).reshape(-1), active.transpose(order).reshape(-1)


def totals(
    addresses: Addresses, active: npt.NDArray[np.bool_], width: int, warp: int, *, atomic: bool
) -> Totals:
    """The totals of one access: int64 [FIELDS].

    ``addresses`` and ``active`` are those of ``in_lanes``; ``width`` is the bytes per element,
    ``warp`` the lanes of a warp.
    """
    rows = -(-addresses.size // warp)
    asked = np.full(rows * warp, _NONE, dtype=np.uint64)
    asked[: addresses.size] = np.where(active, addresses, _NONE)
    lanes = np.sort(asked.reshape(rows, warp), axis=1)
    lanes = lanes[lanes[:, 0] != _NONE]
    found = np.zeros(FIELDS, dtype=np.int64)
    if not lanes.size:
        return found
    taking = (lanes != _NONE).sum(axis=1)
    sectors = np.where(lanes == _NONE, _NONE, lanes >> np.uint64(SECTOR_BITS))
    least = -(-_distinct(lanes) * width >> SECTOR_BITS)
    found[:6] = (
        len(lanes),
        (taking < warp).sum(),
        taking.sum(),
        taking.sum() * width,
        _distinct(sectors).sum(),
        least.sum(),
    )
    if atomic:
        turns = _longest_run(lanes)
        found[9:] = turns.sum(), turns.max()
    return found


def _starts(lanes: Addresses) -> npt.NDArray[np.bool_]:
    """Where a value differs from its left neighbour, in sorted rows."""
    starts = np.ones(lanes.shape, dtype=np.bool_)
    starts[:, 1:] = lanes[:, 1:] != lanes[:, :-1]
    return starts


def _distinct(lanes: Addresses) -> npt.NDArray[np.int64]:
    """The number of distinct values in each row, without ``_NONE``."""
    found: npt.NDArray[np.int64] = (_starts(lanes) & (lanes != _NONE)).sum(axis=1)
    return found


def _longest_run(lanes: Addresses) -> npt.NDArray[np.int64]:
    """How often each row's most frequent value occurs, without ``_NONE``."""
    at = np.arange(lanes.shape[1])
    begun = np.maximum.accumulate(np.where(_starts(lanes), at, 0), axis=1)
    found: npt.NDArray[np.int64] = np.where(lanes == _NONE, 0, at - begun + 1).max(axis=1)
    return found
