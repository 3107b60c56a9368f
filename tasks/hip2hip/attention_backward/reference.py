"""Oracle of the attention_backward task: scores of all keys, for a part of the queries a time."""

import torch

PART = 1 << 23
"""Scores that are in memory at once."""


def inputs(config, generator):
    """Draw queries that match a few keys well, values, and gradients with a size a query."""
    batch, heads, group = config["batch"], config["heads_kv"], config["group"]
    seq, dim, dtype = config["seq"], config["dim"], config["dtype"]
    sure = 0.5 + 1.5 * torch.rand(batch, heads * group, 1, 1, generator=generator)
    q = sure * torch.randn(batch, heads * group, seq, dim, generator=generator) * 8.0 / dim**0.5
    k = torch.randn(batch, heads, seq, dim, generator=generator)
    v = torch.randn(batch, heads, seq, dim, generator=generator)
    v += 0.5 * torch.randn(batch, heads, 1, dim, generator=generator)
    size = 0.2 + torch.rand(batch, heads * group, seq, 1, generator=generator)
    do_ = size * torch.randn(batch, heads * group, seq, dim, generator=generator)
    return {"q": q.to(dtype), "k": k.to(dtype), "v": v.to(dtype), "do_": do_.to(dtype)}


def reference(q, k, v, do_, scale, batch, heads_kv, group, seq, **_):
    """Return dq, dk and dv."""
    dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
    place = torch.arange(seq, device=q.device)
    rows = max(1, PART // (group * seq))
    for one in range(batch):
        for head in range(heads_kv):
            for some in place.split(rows):
                mine = one, slice(head * group, (head + 1) * group), some
                x = scale * q[mine] @ k[one, head].T
                p = torch.softmax(x.masked_fill(place > some[:, None], -torch.inf), dim=-1)
                dp = do_[mine] @ v[one, head].T
                dx = scale * p * (dp - (p * dp).sum(dim=-1, keepdim=True))
                dq[mine] = dx @ k[one, head]
                dk[one, head] += (dx.mT @ q[mine]).sum(dim=0)
                dv[one, head] += (p.mT @ do_[mine]).sum(dim=0)
    return {"dq": dq, "dk": dk, "dv": dv}
