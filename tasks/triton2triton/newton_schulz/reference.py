"""Oracle of the newton_schulz task: the polynomial of the singular values, as products."""

import torch


def inputs(config, generator):
    """Draw momentum with a few strong directions, divided by its Frobenius norm.

    So singular values fall off from nearly 1, as those of gradients do.
    """
    m, n = config["m"], config["n"]
    rank = max(1, min(m, 8))
    strength = 4.0 ** -torch.arange(rank, dtype=torch.float32)
    left = torch.randn(m, rank, generator=generator) * strength
    right = torch.randn(rank, n, generator=generator)
    x = left @ right + 0.1 * torch.randn(m, n, generator=generator)
    return {"x": (x / torch.linalg.vector_norm(x)).to(config["dtype"])}


def reference(x, alpha, beta, gamma, **_):
    """Return y [m, n]."""
    product = x @ x.T
    return {"y": alpha * x + beta * (product @ x) + gamma * (product @ (product @ x))}
