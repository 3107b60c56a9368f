"""Oracle of the adamw task: the update written with the corrected moments."""

import torch


def inputs(config, generator):
    """Draw a state in the middle of training: moments that fit gradients of all sizes.

    Gradients' sizes go over an order of magnitude, v is about their square, and some of the
    parameters have never had a gradient: their moments are zero.
    """
    n = config["n"]
    size = 10.0 ** (torch.rand(n, generator=generator) - 0.5)
    grad = size * torch.randn(n, generator=generator)
    fresh = torch.rand(n, generator=generator) < 0.02
    m = 0.5 * size * torch.randn(n, generator=generator)
    v = (size * (0.3 + torch.rand(n, generator=generator))).square()
    return {
        "grad": grad.to(config["dtype"]),
        "master": 0.05 * torch.randn(n, generator=generator),
        "m": m.masked_fill(fresh, 0.0),
        "v": v.masked_fill(fresh, 0.0),
        "factor": 0.1 + 0.9 * torch.rand(1, generator=generator),
    }


def reference(grad, master, m, v, factor, lr, beta1, beta2, eps, decay, c1, c2, **_):
    """Return param_new, master_new, m_new and v_new [n]."""
    g = grad * factor
    m_new = m + (1 - beta1) * (g - m)
    v_new = v + (1 - beta2) * (g.square() - v)
    moved = m_new / c1 / ((v_new.clamp_min(0) / c2).sqrt() + eps)
    master_new = master - lr * (moved + decay * master)
    return {
        "param_new": master_new,
        "master_new": master_new,
        "m_new": m_new,
        "v_new": v_new,
    }
