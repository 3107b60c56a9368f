"""Oracle and PyTorch baseline of the rope_kv_quant task."""

import torch


def inputs(config, generator):
    """Draw keys with a few large columns, values, and angles of positions that lie anywhere."""
    tokens, heads, half = config["tokens"], config["heads"], config["half"]
    size = 2.0 + 3.0 * torch.rand(tokens, heads, 1, generator=generator)
    large = torch.rand(heads, 2 * half, generator=generator) < 0.04
    k = size * torch.randn(tokens, heads, 2 * half, generator=generator)
    v = size * torch.randn(tokens, heads, 2 * half, generator=generator)
    first = torch.randint(0, 8192, (1,), generator=generator)
    place = (first + torch.arange(tokens)) % 8192
    turn = 0.9 + 0.2 * torch.rand(half, generator=generator)
    angle = place[:, None] * turn * 10000.0 ** (-torch.arange(half) / half)
    dtype = config["dtype"]
    return {
        "k": torch.where(large, 4.0 * k, k).to(dtype),
        "v": v.to(dtype),
        "cos": angle.cos(),
        "sin": angle.sin(),
    }


def scaled(x):
    """What is rounded to integers -127 .. 127, and the scales of the last axis of x."""
    scale = x.abs().amax(dim=-1, keepdim=True) / 127
    return torch.where(scale > 0, x / scale, 0.0), scale[..., 0]


def quantised(x):
    """Integers -127 .. 127 of x and the scales of its last axis."""
    steps, scale = scaled(x)
    return steps.round().clamp(-127, 127).to(torch.int8), scale


def reference(k, v, cos, sin, half, **_):
    """Return k_q, k_scale, v_q and v_scale, not rounded yet, with keys rotated as complex."""
    turned = torch.complex(k[..., :half], k[..., half:]) * torch.complex(cos, sin)[:, None]
    k_q, k_scale = scaled(torch.cat((turned.real, turned.imag), dim=-1))
    v_q, v_scale = scaled(v)
    return {"k_q": k_q, "k_scale": k_scale, "v_q": v_q, "v_scale": v_scale}


def baseline(k, v, cos, sin, half, **_):
    """Elementwise kernels in float32."""
    low, high = k[..., :half].float(), k[..., half:].float()
    c, s = cos[:, None], sin[:, None]
    k_q, k_scale = quantised(torch.cat((low * c - high * s, high * c + low * s), dim=-1))
    v_q, v_scale = quantised(v.float())
    return {"k_q": k_q, "k_scale": k_scale, "v_q": v_q, "v_scale": v_scale}
