"""Oracle of the sampled_block_matmul task: one product a block, by PyTorch."""

import torch
from torch.nn.functional import gelu

SIZE = 64
PART = 256
"""Blocks whose operands are in memory at once."""


def inputs(config, generator):
    """Draw tokens by expert, each with a size, weights that keep sizes, and blocks in bands.

    Most rows have the blocks of one expert, next to each other; the others lie anywhere.
    """
    down, across, blocks = config["down"], config["across"], config["blocks"]
    k, dtype = config["k"], config["dtype"]
    large = torch.where(torch.rand(k, generator=generator) < 0.03, 4.0, 1.0)
    size = 0.3 + torch.rand(SIZE * down, 1, generator=generator)
    x = size * large * torch.randn(SIZE * down, k, generator=generator)
    spread = (0.5 + torch.rand(SIZE * across, 1, generator=generator)) * k**-0.5
    weight = spread * torch.randn(SIZE * across, k, generator=generator)
    width = max(1, blocks // down)
    first = torch.rand(down, generator=generator).sort().values * across // width * width
    apart = torch.arange(across) - first[:, None]
    likely = torch.rand(down, across, generator=generator)
    likely += (apart >= 0) & (apart < width)
    place = likely.flatten().topk(blocks).indices.sort().values
    return {
        "x": x.to(dtype),
        "weight": weight.to(dtype),
        "bias": (0.5 * torch.randn(SIZE * across, generator=generator)).to(dtype),
        "row": (place // across).to(torch.int32),
        "column": (place % across).to(torch.int32),
    }


def reference(x, weight, bias, row, column, **_):
    """Return y [blocks, 64, 64]."""
    tiles, others = x.unflatten(0, (-1, SIZE)), weight.unflatten(0, (-1, SIZE))
    added = bias.unflatten(0, (-1, SIZE))
    parts = []
    for down, across in zip(row.long().split(PART), column.long().split(PART), strict=True):
        parts.append(tiles[down] @ others[across].mT + added[across][:, None])
    return {"y": gelu(torch.cat(parts), approximate="tanh")}
