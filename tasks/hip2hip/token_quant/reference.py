"""Oracle of the token_quant task: smoothed rows in 127ths of their largest element."""

import torch


def inputs(config, generator):
    """Draw activations x [rows, cols] whose outliers lie in some columns, and their factors.

    About one column in 50 is 5 to 30 times as large as the others. smooth [cols] is the square
    root of a column's size, more or less, so that it takes part of the outliers away.
    """
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    outlier = torch.rand(cols, generator=generator) < 0.02
    size = torch.where(outlier, 5.0 + 25.0 * torch.rand(cols, generator=generator), 1.0)
    scale = 0.2 + torch.rand(rows, 1, generator=generator)
    x = scale * size * torch.randn(rows, cols, generator=generator)
    smooth = size.sqrt() * (0.7 + 0.6 * torch.rand(cols, generator=generator))
    return {"x": x.to(dtype), "smooth": smooth}


def reference(x, smooth, **_):
    """Return q [rows, cols], before it is rounded, and scale [rows]."""
    smoothed = x / smooth
    scale = smoothed.abs().amax(dim=-1, keepdim=True) / 127
    steps = torch.where(scale > 0, smoothed / scale, 0.0)
    return {"q": steps, "scale": scale[:, 0]}
