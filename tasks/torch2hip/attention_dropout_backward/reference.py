"""Oracle and PyTorch baseline of the attention_dropout_backward task."""

import torch


def inputs(config, generator):
    """Draw probabilities of rows that are sure and unsure, masks of dropout, and gradients.

    In a third of the rows the last part is masked away, as behind the end of a sequence.
    Gradients go along with the probabilities a little, and have a size a row.
    """
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    spread = 0.5 + 3.0 * torch.rand(rows, 1, generator=generator)
    scores = spread * torch.randn(rows, cols, generator=generator)
    short = torch.rand(rows, 1, generator=generator) < 1 / 3
    end = 1 + (torch.rand(rows, 1, generator=generator) * cols).long()
    scores = scores.masked_fill(short & (torch.arange(cols) >= end), -torch.inf)
    p = torch.softmax(scores, dim=-1)
    kept = torch.rand(rows, cols, generator=generator) >= config["drop"]
    size = 0.3 + torch.rand(rows, 1, generator=generator)
    dz = size * (torch.randn(rows, cols, generator=generator) + p / p.amax(-1, keepdim=True))
    return {"p": p.to(dtype), "kept": kept.to(torch.uint8), "dz": dz.to(dtype)}


def reference(p, kept, dz, scale, drop, **_):
    """Return dx [rows, cols]."""
    g = dz * kept / (1.0 - drop)
    pg = p * g
    return {"dx": scale * (pg - p * pg.sum(dim=-1, keepdim=True))}


def baseline(p, kept, dz, scale, drop, **_):
    """PyTorch's own kernels for dropout and softmax, and a product, in float32."""
    g = torch.ops.aten.native_dropout_backward(dz.float(), kept.bool(), 1.0 / (1.0 - drop))
    backward = torch.ops.aten._softmax_backward_data  # noqa: SLF001 - it has no public name
    dx = backward(g, p.float(), -1, torch.float32)
    return {"dx": dx.mul_(scale).to(p.dtype)}
