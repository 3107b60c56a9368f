"""Oracle of the window_attention task: all scores, biases by an index, hidden ones masked out."""

import torch


def inputs(config, generator):
    """Draw projections with a temperature a head, biases that fall with distance, and regions.

    Most windows are cut by the image's border, at a row, a column or both, into two or four
    regions. The first kind is whole in half of the draws.
    """
    windows, heads, size = config["windows"], config["heads"], config["size"]
    dim, kinds, dtype = config["dim"], config["kinds"], config["dtype"]
    qkv = torch.randn(windows, size * size, 3, heads, dim, generator=generator)
    qkv[:, :, 0] *= 0.3 + 2.0 * torch.rand(heads, 1, generator=generator)
    qkv[:, :, 2] += 0.5
    place = torch.arange(2 * size - 1) - (size - 1)
    far = (place[:, None].square() + place.square()).flatten().float().sqrt()
    slope = torch.rand(heads, generator=generator)
    table = torch.randn(len(far), heads, generator=generator) - slope * far[:, None]
    cut = torch.randint(1, size, (2, kinds), generator=generator)
    cut[torch.rand(2, kinds, generator=generator) < 0.3] = size
    cut[:, 0] = torch.where(torch.rand((), generator=generator) < 0.5, size, cut[:, 0])
    side = torch.arange(size)
    below, right = (side >= cut[0][:, None]), (side >= cut[1][:, None])
    region = 2 * below[:, :, None].int() + right[:, None, :].int()
    return {
        "qkv": qkv.to(dtype),
        "table": table.to(dtype),
        "region": region.flatten(1).to(torch.int32),
    }


def reference(qkv, table, region, windows, size, dim, kinds, **_):
    """Return y [windows, size * size, heads, dim]."""
    q, k, v = qkv.unbind(2)
    place = torch.arange(size * size, device=qkv.device)
    row, column = place // size, place % size
    down = row[:, None] - row + size - 1
    right = column[:, None] - column + size - 1
    bias = table[down * (2 * size - 1) + right].permute(2, 0, 1)
    own = region[torch.arange(windows, device=qkv.device) % kinds]
    hidden = own[:, :, None] != own[:, None, :]
    scores = torch.einsum("wihd,wjhd->whij", q, k) / dim**0.5 + bias
    weights = torch.softmax(scores.masked_fill(hidden[:, None], -torch.inf), dim=-1)
    return {"y": torch.einsum("whij,wjhd->wihd", weights, v)}
