"""Oracle of the lightning_attention_backward task: whole matrices of a head, as for attention."""

import torch


def inputs(config, generator):
    """Draw q, k and v after their activations, rates in steps, and gradients sized by position.

    Queries and keys are mostly positive. Some heads forget within two positions, and others within
    hundreds.
    """
    batch, heads, seq, dim = (config[name] for name in ("batch", "heads", "seq", "dim"))
    shape, dtype = (batch, heads, seq, dim), config["dtype"]
    q, k, v, dy = (torch.randn(shape, generator=generator) for _ in range(4))
    slope = 2.0 ** (-8.0 * (torch.arange(heads) + torch.rand(heads, generator=generator)) / heads)
    size = 0.2 + torch.rand(batch, heads, seq, 1, generator=generator)
    return {
        "q": torch.nn.functional.silu(1.5 * q).to(dtype),
        "k": (torch.nn.functional.silu(1.5 * k) / dim**0.5).to(dtype),
        "v": (0.3 + v).to(dtype),
        "rate": slope,
        "dy": (size * dy).to(dtype),
    }


def reference(q, k, v, rate, dy, seq, **_):
    """Return dq, dk and dv [batch, heads, seq, dim]."""
    place = torch.arange(seq, device=q.device, dtype=q.dtype)
    apart = place[:, None] - place
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    for sequence in range(q.shape[0]):
        for head in range(q.shape[1]):
            at = (sequence, head)
            fade = torch.exp(-rate[head].abs() * apart.clamp_min(0)).tril()
            score, gradient = (q[at] @ k[at].T) * fade, (dy[at] @ v[at].T) * fade
            dq[at], dk[at], dv[at] = gradient @ k[at], gradient.T @ q[at], score.T @ dy[at]
    return {"dq": dq, "dk": dk, "dv": dv}
