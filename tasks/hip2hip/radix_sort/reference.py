"""Oracle of the radix_sort task: two stable sorts, first by depth and then by tile."""

import torch


def inputs(config, generator):
    """Draw Gaussians that cover a few neighbouring tiles each, with the same depth in all of them.

    So equal depths occur, also within a tile. Others differ by a few units in the last place. A few
    tiles have a large part of all pairs.
    """
    n = config["n"]
    things = n // 5 + 1
    thing = torch.arange(n) // 5
    centre = (65535 * torch.rand(things, generator=generator) ** 3).long()
    near = torch.randint(0, 8, (n,), generator=generator)
    depth = 0.2 + 30.0 * torch.rand(things, generator=generator) ** 2
    coarse = torch.rand(things, generator=generator) < 0.2
    depth = torch.where(coarse, (8.0 * depth).ceil() / 8.0, depth)
    close = torch.rand(things, generator=generator) < 0.1
    close[0] = False
    centre = torch.where(close, centre.roll(1), centre)
    bits = depth.roll(1).view(torch.int32) + torch.randint(
        -9, 10, (things,), generator=generator, dtype=torch.int32
    )
    depth = torch.where(close, bits.view(torch.float32), depth)
    return {
        "tile": (centre[thing] + near // 4).clamp_max(65535).to(torch.int32),
        "depth": depth[thing],
        "splat": torch.randint(-(2**31), 2**31, (n,), generator=generator).to(torch.int32),
    }


def reference(tile, depth, splat, **_):
    """Return order and sorted_depth [n]."""
    first = torch.sort(depth, stable=True).indices
    then = torch.sort(tile[first], stable=True).indices
    order = first[then]
    return {"order": splat[order].to(torch.int32), "sorted_depth": depth[order]}
