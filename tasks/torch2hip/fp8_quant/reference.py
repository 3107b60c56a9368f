"""Oracle and PyTorch baseline of the fp8_quant task."""

import torch

MOST = {7: 448.0, 8: 240.0}
FORMAT = {7: torch.float8_e4m3fn, 8: torch.float8_e4m3fnuz}


def inputs(config, generator):
    """Draw activations with a size a row and a few outlier columns; one row in 32 is zero.

    Nothing is nearly half of the least value of the format: in e4m3fnuz the bits on both sides of
    that tie are not neighbours. A tenth of the elements lies far below.
    """
    rows, cols = config["rows"], config["cols"]
    size = 0.2 + 3.0 * torch.rand(rows, 1, generator=generator)
    x = size * torch.randn(rows, cols, generator=generator)
    x = torch.where(torch.rand(cols, generator=generator) < 0.01, 12.0 * x, x)
    x = torch.where(torch.rand(rows, cols, generator=generator) < 0.1, 1e-6 * x, x)
    tie = x.abs().amax(dim=-1, keepdim=True) / MOST[config["bias"]] * 2.0 ** -(config["bias"] + 3)
    near = (x.abs() > 0.9 * tie) & (x.abs() < 1.1 * tie)
    empty = torch.rand(rows, 1, generator=generator) < 1 / 32
    return {"x": x.masked_fill(near | empty, 0.0).to(config["dtype"])}


def reference(x, bias, **_):
    """Return q [rows, cols], not rounded yet, and scale [rows]."""
    scale = x.abs().amax(dim=-1, keepdim=True) / MOST[bias]
    steps = torch.where(scale > 0, x / scale, 0.0)
    codes = torch.arange(127 if bias == 7 else 128, dtype=torch.uint8)
    known = codes.view(FORMAT[bias]).float().to(x)
    size = steps.abs().contiguous()
    below = (torch.searchsorted(known, size, right=True) - 1).clamp_max(len(codes) - 2)
    bits = below + (size - known[below]) / (known[below + 1] - known[below])
    negative = torch.signbit(steps) & ((bits > 0.5) | (bias == 7))
    return {"q": bits + 128 * negative, "scale": scale[:, 0]}


def baseline(x, bias, **_):
    """PyTorch's own conversion to an 8-bit float, of a quotient in float32."""
    wide = x.float()
    scale = wide.abs().amax(dim=-1, keepdim=True).div_(MOST[bias])
    steps = torch.where(scale > 0, wide / scale, 0.0).clamp_(-MOST[bias], MOST[bias])
    return {"q": steps.to(FORMAT[bias]).view(torch.uint8), "scale": scale[:, 0]}
