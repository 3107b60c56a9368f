"""Oracle of the attention_prefill task: scores of all keys, for a part of the queries a time."""

import torch

PART = 1 << 24
"""Scores that are in memory at once."""


def inputs(config, generator):
    """Draw queries that match a few keys well, keys with a common part, and values.

    Heads are sure to different degrees, and the first key draws a part of the attention of all
    queries, as in language models.
    """
    batch, heads, group = config["batch"], config["heads_kv"], config["group"]
    seq, dim, dtype = config["seq"], config["dim"], config["dtype"]
    k = torch.randn(batch, heads, seq, dim, generator=generator)
    sure = 0.5 + 1.5 * torch.rand(batch, heads * group, 1, 1, generator=generator)
    q = sure * torch.randn(batch, heads * group, seq, dim, generator=generator)
    common = torch.randn(batch, heads, 1, dim, generator=generator)
    k[:, :, :1] += common
    q = (q + 0.5 * common.repeat_interleave(group, dim=1)) * 8.0 / dim**0.5
    v = torch.randn(batch, heads, seq, dim, generator=generator)
    v += 0.5 * torch.randn(batch, heads, 1, dim, generator=generator)
    return {"q": q.to(dtype), "k": k.to(dtype), "v": v.to(dtype)}


def reference(q, k, v, scale, heads_kv, group, seq, **_):
    """Return o and lse."""
    o, lse = torch.empty_like(q), q.new_empty(q.shape[:-1])
    place = torch.arange(seq, device=q.device)
    rows = max(1, PART // (group * seq))
    for batch in range(q.shape[0]):
        for head in range(heads_kv):
            for some in place.split(rows):
                mine = batch, slice(head * group, (head + 1) * group), some
                x = scale * q[mine] @ k[batch, head].T
                x = x.masked_fill(place > some[:, None], -torch.inf)
                lse[mine] = torch.logsumexp(x, dim=-1)
                o[mine] = torch.softmax(x, dim=-1) @ v[batch, head]
    return {"o": o, "lse": lse}
