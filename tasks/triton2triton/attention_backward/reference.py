"""Oracle of the attention_backward task: gradients written out, with whole matrices of a head."""

import torch


def inputs(config, generator):
    """Draw normal q, k and v with a temperature per head, and gradients with a size per query.

    Some heads attend to nearly everything and others to a handful of keys.
    """
    batch, heads, seq, dim = (config[name] for name in ("batch", "heads", "seq", "dim"))
    shape, dtype = (batch, heads, seq, dim), config["dtype"]
    temperature = 0.3 + 2.0 * torch.rand(batch, heads, 1, 1, generator=generator)
    size = 0.2 + torch.rand(batch, heads, seq, 1, generator=generator)
    drawn = [torch.randn(shape, generator=generator) for _ in range(4)]
    q, k, v, dy = temperature * drawn[0], drawn[1], 0.5 + drawn[2], size * drawn[3]
    return {"q": q.to(dtype), "k": k.to(dtype), "v": v.to(dtype), "dy": dy.to(dtype)}


def reference(q, k, v, dy, seq, dim, **_):
    """Return dq, dk and dv [batch, heads, seq, dim]."""
    hidden = torch.ones(seq, seq, dtype=torch.bool, device=q.device).triu(1)
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    for sequence in range(q.shape[0]):
        for head in range(q.shape[1]):
            at = (sequence, head)
            scores = q[at] @ k[at].T / dim**0.5
            p = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
            dp = dy[at] @ v[at].T
            ds = p * (dp - (p * dp).sum(dim=-1, keepdim=True)) / dim**0.5
            dq[at], dk[at], dv[at] = ds @ k[at], ds.T @ q[at], p.T @ dy[at]
    return {"dq": dq, "dk": dk, "dv": dv}
