"""Oracle of the block_sparse_matmul task: a product for each block row, of the columns it has."""

import torch


def inputs(config, generator):
    """Draw x with a few large columns, blocks that lie anywhere, and weights that keep sizes.

    Block rows have different numbers of blocks, some of them none.
    """
    rows, across, down = config["rows"], config["across"], config["down"]
    blocks, dtype = config["blocks"], config["dtype"]
    size = torch.where(torch.rand(32 * across, generator=generator) < 0.02, 4.0, 1.0)
    x = size * torch.randn(rows, 32 * across, generator=generator)
    likely = torch.rand(down, across, generator=generator)
    likely += torch.rand(down, 1, generator=generator)
    place = likely.flatten().topk(blocks).indices.sort().values
    begin = torch.zeros(down + 1, dtype=torch.int32)
    begin[1:] = torch.bincount(place // across, minlength=down).cumsum(0)
    value = torch.randn(blocks, 32, 32, generator=generator) * (32 * blocks / down) ** -0.5
    return {
        "x": x.to(dtype),
        "value": value.to(dtype),
        "column": (place % across).to(torch.int32),
        "begin": begin,
    }


def reference(x, value, column, begin, rows, down, **_):
    """Return y [rows, 32 * down]."""
    tiles = x.reshape(rows, -1, 32)
    y = x.new_zeros(rows, down, 32)
    bounds = begin.tolist()
    for out in range(down):
        some = slice(bounds[out], bounds[out + 1])
        y[:, out] = torch.einsum("rbc,boc->ro", tiles[:, column[some].long()], value[some])
    return {"y": y.flatten(1)}
