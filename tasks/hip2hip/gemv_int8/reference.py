"""Oracle of the gemv_int8 task: a product with the integers, scaled afterwards."""

import torch


def inputs(config, generator):
    """Draw x [batch, ins], normal, int8 weights that are normal too, scales and a bias.

    Scales differ by channel, and are such that outputs are of the order of one.
    """
    batch, ins, outs, dtype = (config[name] for name in ("batch", "ins", "outs", "dtype"))
    x = torch.randn(batch, ins, generator=generator)
    w = (40.0 * torch.randn(outs, ins, generator=generator)).round().clamp(-127, 127)
    scale = (0.3 + torch.rand(outs, generator=generator)) / (40.0 * ins**0.5)
    bias = 0.3 * torch.randn(outs, generator=generator)
    return {"x": x.to(dtype), "w": w.to(torch.int8), "scale": scale, "bias": bias.to(dtype)}


def reference(x, w, scale, bias, **_):
    """Return y [batch, outs]."""
    return {"y": (x @ w.to(x.dtype).T) * scale + bias}
