"""Oracle of the chamfer task: all differences of one pair of clouds, a part of points a time."""

import torch

PART = 1 << 23
"""Distances that are in memory at once."""


def inputs(config, generator):
    """Draw points on a sphere that lies anywhere, seen twice, with noise and a part missing.

    So most points have a near neighbour, and a few have none.
    """
    batch, n, m = config["batch"], config["n"], config["m"]
    centre = 4.0 * torch.randn(batch, 1, 3, generator=generator)

    def cloud(points):
        p = torch.randn(batch, points, 3, generator=generator)
        p = 2.0 * p / p.norm(dim=-1, keepdim=True).clamp_min(1e-3)
        return centre + p + 0.1 * torch.randn(batch, points, 3, generator=generator)

    a, b = cloud(n), cloud(m)
    b[..., 2] = centre[..., 2] + (b[..., 2] - centre[..., 2]).abs() + 0.3
    return {"a": a.to(config["dtype"]), "b": b.to(config["dtype"])}


def reference(a, b, n, **_):
    """Return near_a [batch, n] and near_b [batch, m]."""
    near_a, near_b = a.new_empty(a.shape[:2]), b.new_full(b.shape[:2], torch.inf)
    for one in range(a.shape[0]):
        for first in range(0, n, max(1, PART // b.shape[1])):
            some = slice(first, first + max(1, PART // b.shape[1]))
            away = sum((a[one, some, None, axis] - b[one, None, :, axis]) ** 2 for axis in range(3))
            near_a[one, some] = away.amin(dim=1)
            near_b[one] = torch.minimum(near_b[one], away.amin(dim=0))
    return {"near_a": near_a, "near_b": near_b}
