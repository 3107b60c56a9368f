"""Oracle and PyTorch baseline of the rope task."""

import torch


def inputs(config, generator):
    """Draw x [batch, heads, seq, 2 * half], normal, and tables of real positions.

    cos and sin [seq, half] hold the usual frequencies 10000^(-j / half), starting at
    a random position, so that they differ between draws.
    """
    seq, half = config["seq"], config["half"]
    shape = config["batch"], config["heads"], seq, 2 * half
    x = torch.randn(shape, generator=generator).to(config["dtype"])
    start = torch.randint(0, 4096, (), generator=generator)
    position = torch.arange(seq, dtype=torch.float64) + start
    frequency = 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = position[:, None] * frequency
    return {"x": x, "cos": angle.cos().float(), "sin": angle.sin().float()}


def reference(x, cos, sin, **_):
    """Return y: each pair (x1, x2), as a complex number, times cos + i sin."""
    half = cos.shape[-1]
    real = torch.promote_types(x.dtype, cos.dtype)
    pair = torch.complex(x[..., :half].to(real), x[..., half:].to(real))
    rotated = pair * torch.complex(cos.to(real), sin.to(real))
    return {"y": torch.cat((rotated.real, rotated.imag), dim=-1).to(x.dtype)}


def baseline(x, cos, sin, **_):
    """Four elementwise kernels that write the halves of y in place, with no temporaries."""
    half = cos.shape[-1]
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    x1, x2 = x[..., :half], x[..., half:]
    y = torch.empty_like(x)
    torch.mul(x1, cos, out=y[..., :half]).addcmul_(x2, sin, value=-1)
    torch.mul(x2, cos, out=y[..., half:]).addcmul_(x1, sin)
    return {"y": y}


def compilable(x, cos, sin, **_):
    """The same for torch.compile, which makes one kernel of it and none of views as outputs."""
    half = cos.shape[-1]
    x1, x2 = x[..., :half].float(), x[..., half:].float()
    y = torch.cat((x1 * cos - x2 * sin, x2 * cos + x1 * sin), dim=-1)
    return {"y": y.to(x.dtype)}
