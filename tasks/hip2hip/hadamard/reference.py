"""Oracle of the hadamard task: a product with the whole matrix of signs."""

import torch

SIZE = 128


def inputs(config, generator):
    """Draw activations with a few columns that are twenty times larger, and random signs."""
    rows, groups = config["rows"], config["groups"]
    loud = 1.0 + 19.0 * (torch.rand(groups * SIZE, generator=generator) < 0.01)
    x = loud * torch.randn(rows, groups * SIZE, generator=generator)
    sign = 2 * torch.randint(0, 2, (groups * SIZE,), generator=generator) - 1
    return {"x": x.to(config["dtype"]), "sign": sign.to(torch.int8)}


def reference(x, sign, groups, **_):
    """Return y [rows, 128 * groups]."""
    matrix = x.new_ones(1, 1)
    while matrix.shape[0] < SIZE:
        matrix = torch.cat((torch.cat((matrix, matrix), 1), torch.cat((matrix, -matrix), 1)))
    signed = (x * sign.to(x.dtype)).unflatten(-1, (groups, SIZE))
    return {"y": (signed @ matrix / SIZE**0.5).flatten(1)}
