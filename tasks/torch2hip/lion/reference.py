"""Oracle and PyTorch baseline of the lion task."""

import torch


def inputs(config, generator):
    """Draw a state in the middle of training, and a limit that about halves the gradient.

    Gradients' sizes go over an order of magnitude. No sum whose sign is taken is as near to 0 as
    float32 rounds: else about one sign in 10^8 would depend on how a kernel adds, and a vector of
    that length would have a wrong element.
    """
    n, beta1 = config["n"], config["beta1"]
    size = 10.0 ** (torch.rand(n, generator=generator) - 0.5)
    grad = (size * torch.randn(n, generator=generator)).to(config["dtype"])
    m = 0.3 * size * torch.randn(n, generator=generator)
    share = 0.3 + 0.4 * torch.rand(1, generator=generator)
    norm = torch.linalg.vector_norm(grad, dtype=torch.float64)
    limit = (share * norm).float()
    c = beta1 * m + (1 - beta1) * grad.float() * (limit / norm).float()
    return {
        "grad": grad,
        "param": 0.05 * torch.randn(n, generator=generator),
        "m": torch.where(c.abs() < 2e-6 * m.abs(), 2.0 * m, m),
        "limit": limit,
    }


def reference(grad, param, m, limit, lr, beta1, beta2, decay, **_):
    """Return weight, param_new and m_new [n]."""
    norm = grad.square().sum().sqrt()
    g = grad * (limit / (norm + 1e-6)).clamp_max(1.0)
    c = m + (1 - beta1) * (g - m)
    param_new = param * (1 - lr * decay) - lr * c.sign()
    return {"weight": param_new, "param_new": param_new, "m_new": m + (1 - beta2) * (g - m)}


def baseline(grad, param, m, limit, lr, beta1, beta2, decay, **_):
    """A sum, and elementwise kernels in float32, in place where that is possible.

    PyTorch's norm of a long vector is off by 1e-4 on a CPU, and signs with it.
    """
    wide = grad.float()
    norm = wide.square().sum().sqrt_()
    g = wide * (limit / (norm + 1e-6)).clamp_max_(1.0)
    c = (m * beta1).add_(g, alpha=1 - beta1).sign_()
    param_new = (param * (1 - lr * decay)).add_(c, alpha=-lr)
    m_new = (m * beta2).add_(g, alpha=1 - beta2)
    return {"weight": param_new.to(grad.dtype), "param_new": param_new, "m_new": m_new}
