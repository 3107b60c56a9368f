"""Oracle and PyTorch baseline of the geglu_backward task."""

import math

import torch
from torch.nn.functional import gelu

SCALE = math.sqrt(2.0 / math.pi)


def inputs(config, generator):
    """Draw gates wide enough to reach both tails, values, and gradients with a scale a row."""
    shape, dtype = (config["rows"], config["cols"]), config["dtype"]
    gate = 2.0 * torch.randn(shape, generator=generator)
    value = 1.5 * torch.randn(shape, generator=generator)
    size = 0.1 + torch.rand(config["rows"], 1, generator=generator)
    dy = size * torch.randn(shape, generator=generator)
    return {"gate": gate.to(dtype), "value": value.to(dtype), "dy": dy.to(dtype)}


def reference(gate, value, dy, **_):
    """Return dgate, dvalue and h [rows, cols]; the derivative is written with 1 - tanh^2."""
    u = SCALE * (gate + 0.044715 * gate**3)
    half = 0.5 * (1.0 + torch.tanh(u))
    slope = half + gate * 2.0 * half * (1.0 - half) * SCALE * (1.0 + 3 * 0.044715 * gate**2)
    return {"dgate": dy * value * slope, "dvalue": dy * gate * half, "h": gate * half * value}


def baseline(gate, value, dy, **_):
    """PyTorch's own kernels: GELU, its gradient, and three products."""
    activated = gelu(gate, approximate="tanh")
    slope = torch.ops.aten.gelu_backward(dy, gate, approximate="tanh")
    return {"dgate": slope * value, "dvalue": dy * activated, "h": activated * value}
