"""Oracle of the ragged_mean task: differences of prefix sums, over lengths."""

import torch


def inputs(config, generator):
    """Draw tokens' features, with a mean of its own for each column, and sequences' lengths.

    Lengths are exponentially distributed, more or less; in a batch of many some are empty.
    """
    tokens, sequences, cols = config["tokens"], config["sequences"], config["cols"]
    share = torch.rand(sequences, generator=generator, dtype=torch.float64).clamp_min(1e-9)
    share = -share.log() * (torch.rand(sequences, generator=generator) > 0.05)
    share[-1] += 1e-6
    ends = (share.cumsum(0) / share.sum() * tokens).round().long().clamp(0, tokens)
    ends[-1] = tokens
    offset = torch.cat((torch.zeros(1, dtype=torch.int64), ends))
    centre = torch.randn(cols, generator=generator)
    x = centre + 2.0 * torch.randn(tokens, cols, generator=generator)
    return {"x": x.to(config["dtype"]), "offset": offset}


def reference(x, offset, **_):
    """Return y [sequences, cols]."""
    sums = x.T.contiguous().cumsum(1).T  # devices scan rows in parallel, and columns one by one
    until = torch.cat((x.new_zeros(1, x.shape[1]), sums))
    length = offset.diff()[:, None]
    return {"y": (until[offset[1:]] - until[offset[:-1]]) / length.clamp_min(1)}
