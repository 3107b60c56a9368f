"""Oracle and PyTorch baseline of the prune_24 task."""

import torch


def inputs(config, generator):
    """Draw weights with a size a row; in a quarter of the rows many are equally large."""
    rows, groups = config["rows"], config["groups"]
    size = 0.3 + torch.rand(rows, 1, generator=generator)
    w = torch.randn(rows, 8 * groups, generator=generator)
    coarse = torch.rand(rows, 1, generator=generator) < 1 / 4
    return {"w": (size * torch.where(coarse, (2 * w).round() / 2, w)).to(config["dtype"])}


def reference(w, rows, groups, **_):
    """Return kept and place, from the rank of each element among its four."""
    fours = w.reshape(rows, 2 * groups, 4)
    mine, others = fours.abs().unsqueeze(-1), fours.abs().unsqueeze(-2)
    column = torch.arange(4, device=w.device, dtype=torch.uint8)
    before = (others > mine) | ((others == mine) & (column < column.unsqueeze(-1)))
    stays = before.sum(dim=-1, dtype=torch.uint8) < 2
    first, last = stays.byte().argmax(dim=-1), 3 - stays.flip(-1).byte().argmax(dim=-1)
    bits = (first + 4 * last).to(torch.uint8).view(rows, groups, 2)
    kept = fours.gather(-1, torch.stack((first, last), dim=-1)).view(rows, -1)
    return {"kept": kept, "place": bits[..., 0] + 16 * bits[..., 1]}


def baseline(w, rows, groups, **_):
    """Comparisons of the six pairs of each four, instead of a sort, and a gather."""
    a, b, c, d = w.abs().view(rows, 2 * groups, 4).unbind(-1)
    ab, ac, ad, bc, bd, cd = a >= b, a >= c, a >= d, b >= c, b >= d, c >= d
    wins = torch.stack(
        (
            ab.byte() + ac + ad,
            (~ab).byte() + bc + bd,
            (~ac).byte() + ~bc + cd,
            (~ad).byte() + ~bd + ~cd,
        ),
        dim=-1,
    )
    stays = wins >= 2
    column = torch.arange(4, device=w.device, dtype=torch.uint8)
    first = torch.where(stays, column, 4).amin(dim=-1)
    second = torch.where(stays, column, 0).amax(dim=-1)
    two = torch.stack((first, second), dim=-1).long()
    bits = (first + 4 * second).view(rows, groups, 2)
    kept = w.view(rows, 2 * groups, 4).gather(-1, two).flatten(1)
    return {"kept": kept, "place": bits[..., 0] + 16 * bits[..., 1]}
