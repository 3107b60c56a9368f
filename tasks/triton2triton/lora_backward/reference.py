"""Oracle of the lora_backward task: the chain rule, one adapter after another."""

import torch


def inputs(config, generator):
    """Draw activations with a few large columns, gradients with a size a row, and adapters.

    Adapters differ in how far they were trained, and in how many rows they have, some of them none.
    """
    rows, adapters, rank = config["rows"], config["adapters"], config["rank"]
    k, n, dtype = config["k"], config["n"], config["dtype"]
    liked = torch.softmax(1.2 * torch.randn(adapters, generator=generator), dim=0)
    chosen = torch.multinomial(liked, rows, replacement=True, generator=generator)
    count = torch.bincount(chosen, minlength=adapters)
    begin = torch.cat((torch.zeros(1, dtype=torch.int64), count.cumsum(0)))
    large = torch.where(torch.rand(k, generator=generator) < 0.03, 4.0, 1.0)
    x = large * (0.2 + torch.randn(rows, k, generator=generator))
    size = 0.2 + torch.rand(rows, 1, generator=generator)
    dy = size * torch.randn(rows, n, generator=generator)
    trained = 0.3 + torch.rand(adapters, 1, 1, generator=generator)
    down = torch.randn(adapters, rank, k, generator=generator) / k**0.5
    up = trained * torch.randn(adapters, n, rank, generator=generator) / n**0.5
    return {
        "x": x.to(dtype),
        "dy": dy.to(dtype),
        "down": down.to(dtype),
        "up": up.to(dtype),
        "begin": begin.to(torch.int32),
    }


def reference(x, dy, down, up, begin, scale, **_):
    """Return dx [rows, k], ddown [adapters, rank, k] and dup [adapters, n, rank]."""
    dx, ddown, dup = torch.empty_like(x), torch.empty_like(down), torch.empty_like(up)
    ends = begin.tolist()
    for adapter in range(down.shape[0]):
        rows = slice(ends[adapter], ends[adapter + 1])
        h, g = x[rows] @ down[adapter].T, dy[rows] @ up[adapter]
        dx[rows] = scale * g @ down[adapter]
        ddown[adapter] = scale * g.T @ x[rows]
        dup[adapter] = scale * dy[rows].T @ h
    return {"dx": dx, "ddown": ddown, "dup": dup}
