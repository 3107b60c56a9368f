"""Oracle and PyTorch baseline of the biased_softmax task."""

import torch


def inputs(config, generator):
    """Draw scores of rows that are sure and unsure, biases that fall with distance, and padding.

    A sequence's padding is behind its end, which may be anywhere, but for single columns. The last
    sequence has none behind it, so that the last column counts.
    """
    batch, heads, rows, cols = (config[name] for name in ("batch", "heads", "rows", "cols"))
    spread = 2.0 + 8.0 * torch.rand(batch, heads, rows, 1, generator=generator)
    x = spread * torch.randn(batch, heads, rows, cols, generator=generator)
    away = (torch.arange(rows)[:, None] - torch.arange(cols)).abs() / cols
    steep = 3.0 * torch.rand(heads, 1, 1, generator=generator)
    bias = 0.7 * torch.randn(heads, rows, cols, generator=generator) - steep * away
    end = 1 + (torch.rand(batch, 1, generator=generator) * cols).long()
    end[-1] = cols
    mask = torch.arange(cols) < end
    mask &= torch.rand(batch, cols, generator=generator) >= 0.02
    mask[:, 0] = mask[-1, -1] = True
    dtype = config["dtype"]
    return {"x": x.to(dtype), "bias": bias.to(dtype), "mask": mask.to(torch.uint8)}


def reference(x, bias, mask, scale, **_):
    """Return y [batch, heads, rows, cols]."""
    padding = (mask == 0)[:, None, None]
    return {"y": torch.softmax((scale * x + bias).masked_fill(padding, -torch.inf), dim=-1)}


def baseline(x, bias, mask, scale, **_):
    """A sum and a mask in float32, and PyTorch's own softmax."""
    z = torch.add(bias.float(), x, alpha=scale)
    z.masked_fill_((mask == 0)[:, None, None], -torch.inf)
    return {"y": torch.softmax(z, dim=-1).to(x.dtype)}
