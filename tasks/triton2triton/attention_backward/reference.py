"""Oracle of the attention_backward task: all scores of a head, for one head after another."""

import torch


def inputs(config, generator):
    """Draw what a forward pass had and kept: queries that match some keys well, y and lse.

    Values have a mean a head, and gradients a size a query.
    """
    batch, heads, group = config["batch"], config["kv_heads"], config["group"]
    seq, dim, dtype = config["seq"], config["dim"], config["dtype"]
    temperature = 0.3 + 2.0 * torch.rand(batch, heads * group, 1, 1, generator=generator)
    q = temperature * torch.randn(batch, heads * group, seq, dim, generator=generator)
    k = torch.randn(batch, heads, seq, dim, generator=generator)
    v = torch.randn(batch, heads, seq, dim, generator=generator)
    v += 0.5 * torch.randn(batch, heads, 1, dim, generator=generator)
    size = 0.2 + torch.rand(batch, heads * group, seq, 1, generator=generator)
    dy = size * torch.randn(batch, heads * group, seq, dim, generator=generator)
    q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    y, lse = torch.empty_like(q), torch.empty(q.shape[:-1])
    for sequence in range(batch):
        for head in range(heads * group):
            at, own = (sequence, head), (sequence, head // group)
            scores = q[at].float() @ k[own].float().T / dim**0.5
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
            lse[at] = scores.logsumexp(dim=-1)
            y[at] = ((scores - lse[at][:, None]).exp() @ v[own].float()).to(dtype)
    return {"q": q, "k": k, "v": v, "y": y, "lse": lse, "dy": dy.to(dtype)}


def reference(q, k, v, y, lse, dy, group, dim, **_):
    """Return dq [batch, kv_heads * group, seq, dim], dk and dv [batch, kv_heads, seq, dim]."""
    scale = dim**-0.5
    dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for sequence in range(q.shape[0]):
        for head in range(q.shape[1]):
            at, own = (sequence, head), (sequence, head // group)
            scores = scale * q[at] @ k[own].T
            p = torch.exp((scores - lse[at][:, None]).clamp_max(0.0)).tril()
            ds = p * (dy[at] @ v[own].T - (dy[at] * y[at]).sum(dim=-1, keepdim=True))
            dq[at] = scale * ds @ k[own]
            dk[own] += scale * ds.T @ q[at]
            dv[own] += p.T @ dy[at]
    return {"dq": dq, "dk": dk, "dv": dv}
