"""Oracle of the newton_schulz task: the polynomial of the singular values, as products."""

import torch


def inputs(config, generator):
    """Draw what the iteration has after its first steps: all singular values matter.

    Of a matrix with a few strong directions the products would be known from those alone. Rows
    differ in size. The largest singular value is a bit below 1, unless the matrix is small.
    """
    m, n = config["m"], config["n"]
    size = (0.6 + 0.8 * torch.rand(m, 1, generator=generator)) / (1.25 * (m**0.5 + n**0.5))
    return {"x": (size * torch.randn(m, n, generator=generator)).to(config["dtype"])}


def reference(x, alpha, beta, gamma, **_):
    """Return y [m, n]."""
    product = x @ x.T
    return {"y": alpha * x + beta * (product @ x) + gamma * (product @ (product @ x))}
