"""Oracle of the adam_8bit task: moments read, moved and written back, a block a row."""

import torch

SIZE = 256


def inputs(config, generator):
    """Draw a state in the middle of training: gradients with sizes of their own, and their moments.

    Blocks differ in scale by two orders of magnitude. No second moment is 0 beside a first one.
    """
    blocks, dtype = config["blocks"], config["dtype"]
    shape = (blocks, SIZE)
    level = 10.0 ** (2.0 * torch.rand(blocks, 1, generator=generator) - 2.0)
    size = level * 10.0 ** (torch.rand(shape, generator=generator) - 0.5)
    m = 0.5 * size * torch.randn(shape, generator=generator)
    root = size * (0.3 + torch.rand(shape, generator=generator))
    first_scale, second_scale = m.abs().amax(dim=1), root.amax(dim=1)
    first = (127 * m / first_scale[:, None]).round()
    second = (255 * root / second_scale[:, None]).round().clamp_min(1)
    grad = size * torch.randn(shape, generator=generator)
    return {
        "grad": grad.flatten().to(dtype),
        "master": 0.05 * torch.randn(blocks * SIZE, generator=generator),
        "first": first.to(torch.int8).flatten(),
        "second": second.to(torch.uint8).flatten(),
        "first_scale": first_scale,
        "second_scale": second_scale.square(),
    }


def reference(
    grad,
    master,
    first,
    second,
    first_scale,
    second_scale,
    lr,
    beta1,
    beta2,
    eps,
    decay,
    c1,
    c2,
    **_,
):
    """Return master_new, both moments' bytes, before they are rounded, and their scales."""
    g = grad.reshape(-1, SIZE)
    m = first.reshape(-1, SIZE).to(g.dtype) * (first_scale / 127)[:, None]
    v = (second.reshape(-1, SIZE).to(g.dtype) / 255).square() * second_scale.clamp_min(0)[:, None]
    m, v = torch.lerp(m, g, 1 - beta1), torch.lerp(v, g.square(), 1 - beta2)
    moved = (m / c1 / ((v / c2).sqrt() + eps)).flatten()
    largest, highest = m.abs().amax(dim=1), v.amax(dim=1)
    steps = torch.where(largest[:, None] > 0, 127 * m / largest[:, None], 0.0)
    roots = torch.where(highest[:, None] > 0, 255 * (v / highest[:, None]).sqrt(), 0.0)
    return {
        "master_new": master - lr * (moved + decay * master),
        "first_new": steps.flatten(),
        "second_new": roots.flatten(),
        "first_scale_new": largest,
        "second_scale_new": highest,
    }
