"""Oracle of the attention_prefill task: all scores at once, the later keys masked out."""

import math

import torch


def inputs(config, generator):
    """Draw normal q, k and v with a temperature per head, and an offset that all keys share.

    Some heads attend to nearly everything and others to a handful of keys. v has an offset, so
    that weights must sum to one.
    """
    batch, heads, group = config["batch"], config["kv_heads"], config["group"]
    seq, dim, dtype = config["seq"], config["dim"], config["dtype"]
    temperature = 0.3 + 2.5 * torch.rand(batch, heads * group, 1, 1, generator=generator)
    q = temperature * torch.randn(batch, heads * group, seq, dim, generator=generator)
    common = torch.randn(batch, heads, 1, dim, generator=generator)
    k = common + torch.randn(batch, heads, seq, dim, generator=generator)
    v = 0.5 + torch.randn(batch, heads, seq, dim, generator=generator)
    return {"q": q.to(dtype), "k": k.to(dtype), "v": v.to(dtype)}


def reference(q, k, v, group, seq, **_):
    """Return y [batch, kv_heads * group, seq, dim]."""
    hidden = torch.ones(seq, seq, dtype=torch.bool, device=q.device).triu(1)
    y = torch.empty_like(q)
    for sequence in range(q.shape[0]):
        for head in range(q.shape[1]):
            keys, values = k[sequence, head // group], v[sequence, head // group]
            scores = q[sequence, head] @ keys.T / math.sqrt(q.shape[-1])
            weights = torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)
            y[sequence, head] = weights @ values
    return {"y": y}
