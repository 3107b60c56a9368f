"""Oracle and PyTorch baseline of the adamw_8bit task."""

import torch


def inputs(config, generator):
    """Draw a state in the middle of training, with blocks that differ in the size of gradients.

    Gradients are those of a scaled loss, and the second moment is about their square. One block in
    sixteen has never had a gradient and has none now, as the rows of words that do not occur.
    """
    blocks, dtype = config["blocks"], config["dtype"]
    size = 10.0 ** (1.5 * torch.rand(blocks, 1, generator=generator))
    fresh = torch.rand(blocks, 1, generator=generator) < 1 / 16
    size = size.masked_fill(fresh, 0.0)
    apart = 0.3 + torch.rand(blocks, 256, generator=generator)
    grad = size * apart * torch.randn(blocks, 256, generator=generator)
    m = 0.4 * size * apart * torch.randn(blocks, 256, generator=generator)
    root = size * apart * (0.5 + torch.rand(blocks, 256, generator=generator))
    m_q, m_scale = quantised(m, 127)
    r_q, r_scale = quantised(root, 255)
    return {
        "param": 0.05 * torch.randn(256 * blocks, generator=generator),
        "grad": grad.flatten().to(dtype),
        "m_q": m_q.to(torch.int8),
        "m_scale": m_scale,
        "r_q": r_q.to(torch.uint8),
        "r_scale": r_scale,
    }


def scaled(blocks, most):
    """What is rounded to integers up to ``most`` of blocks [n, 256], flat, and scales [n]."""
    scale = blocks.abs().amax(dim=-1, keepdim=True) / most
    return torch.where(scale > 0, blocks / scale, 0.0).flatten(), scale[:, 0]


def quantised(blocks, most):
    """Integers up to ``most`` of blocks [n, 256], flat, and scales [n]."""
    steps, scale = scaled(blocks, most)
    return steps.round().clamp(-most, most), scale


def reference(param, grad, m_q, m_scale, r_q, r_scale, lr, beta1, beta2, eps, decay, c1, c2, **_):
    """Return the new weight, param, and moments, not rounded yet, with their scales."""
    m = m_q.to(param.dtype).reshape(-1, 256) * m_scale[:, None]
    root = r_q.to(param.dtype).reshape(-1, 256) * r_scale[:, None]
    g = grad.reshape(-1, 256)
    m = m + (1 - beta1) * (g - m)
    v = root**2 + (1 - beta2) * (g**2 - root**2)
    step = (m / c1) / ((v / c2).sqrt() + eps)
    param_new = param - lr * (decay * param + step.flatten())
    m_q_new, m_scale_new = scaled(m, 127)
    r_q_new, r_scale_new = scaled(v.sqrt(), 255)
    return {
        "weight": param_new,
        "param_new": param_new,
        "m_q_new": m_q_new,
        "m_scale_new": m_scale_new,
        "r_q_new": r_q_new,
        "r_scale_new": r_scale_new,
    }


def baseline(param, grad, m_q, m_scale, r_q, r_scale, lr, beta1, beta2, eps, decay, c1, c2, **_):
    """One kernel for each step, in float32 and in place where that is possible."""
    g = grad.float().view(-1, 256)
    m = (m_q.view(-1, 256) * m_scale[:, None]).mul_(beta1).add_(g, alpha=1 - beta1)
    v = (r_q.view(-1, 256) * r_scale[:, None]).square_().mul_(beta2)
    v.addcmul_(g, g, value=1 - beta2)
    below = (v / c2).sqrt_().add_(eps)
    param_new = (param * (1 - lr * decay)).view(-1, 256).addcdiv_(m, below, value=-lr / c1)
    m_q_new, m_scale_new = quantised(m, 127)
    r_q_new, r_scale_new = quantised(v.sqrt_(), 255)
    return {
        "weight": param_new.flatten().to(grad.dtype),
        "param_new": param_new.flatten(),
        "m_q_new": m_q_new.to(torch.int8),
        "m_scale_new": m_scale_new,
        "r_q_new": r_q_new.to(torch.uint8),
        "r_scale_new": r_scale_new,
    }
