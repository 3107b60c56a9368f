"""Oracle of the jagged_dense_bmm task: one product for each sequence that has rows."""

import torch


def inputs(config, generator):
    """Draw histories of all lengths up to the longest, features, and matrices of the sequences.

    Lengths have a heavy tail: a few histories are long, many are short and some are empty.
    """
    rows, batch, longest = config["rows"], config["batch"], config["longest"]
    k, n, dtype = config["k"], config["n"], config["dtype"]
    liked = torch.rand(batch, generator=generator) ** -0.6 - 1.0
    length = (liked / liked.sum().clamp_min(1e-6) * rows).long().clamp_max(longest)
    room = (longest - length).cumsum(0)
    missing = rows - int(length.sum())
    length += room.clamp_max(missing).diff(prepend=torch.zeros(1, dtype=torch.int64))
    begin = torch.cat((torch.zeros(1, dtype=torch.int64), length.cumsum(0)))
    size = (0.4 + torch.rand(batch, 1, 1, generator=generator)) / k**0.5
    return {
        "x": (0.2 + torch.randn(rows, k, generator=generator)).to(dtype),
        "begin": begin.to(torch.int32),
        "dense": (size * torch.randn(batch, k, n, generator=generator)).to(dtype),
        "bias": (0.5 * torch.randn(batch, n, generator=generator)).to(dtype),
    }


def reference(x, begin, dense, bias, n, **_):
    """Return y [rows, n]."""
    y = x.new_zeros(x.shape[0], n)
    ends = begin.tolist()
    for sequence in range(dense.shape[0]):
        rows = slice(ends[sequence], ends[sequence + 1])
        y[rows] = x[rows] @ dense[sequence] + bias[sequence]
    return {"y": y}
