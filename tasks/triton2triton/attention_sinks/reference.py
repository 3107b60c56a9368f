"""Oracle of the attention_sinks task: the sink as one more column of the scores."""

import math

import torch


def inputs(config, generator):
    """Draw normal q, k and v with a temperature per head, and sinks about as large as scores.

    v has an offset, so that a sink that takes too much or too little shows.
    """
    batch, heads, group = config["batch"], config["kv_heads"], config["group"]
    seq, dim, dtype = config["seq"], config["dim"], config["dtype"]
    temperature = 0.3 + 2.0 * torch.rand(batch, heads * group, 1, 1, generator=generator)
    q = temperature * torch.randn(batch, heads * group, seq, dim, generator=generator)
    k = torch.randn(batch, heads, seq, dim, generator=generator)
    v = 0.5 + torch.randn(batch, heads, seq, dim, generator=generator)
    sink = 2.0 + 2.0 * torch.randn(heads * group, generator=generator)
    return {"q": q.to(dtype), "k": k.to(dtype), "v": v.to(dtype), "sink": sink}


def reference(q, k, v, sink, group, seq, window, **_):
    """Return y [batch, kv_heads * group, seq, dim]."""
    place = torch.arange(seq, device=q.device)
    back = place[:, None] - place
    hidden = (back < 0) | (back >= window)
    y = torch.empty_like(q)
    for sequence in range(q.shape[0]):
        for head in range(q.shape[1]):
            keys, values = k[sequence, head // group], v[sequence, head // group]
            scores = q[sequence, head] @ keys.T / math.sqrt(q.shape[-1])
            scores = scores.masked_fill(hidden, -math.inf)
            extended = torch.cat((scores, sink[head].expand(seq, 1).to(scores.dtype)), dim=-1)
            y[sequence, head] = torch.softmax(extended, dim=-1)[:, :seq] @ values
    return {"y": y}
