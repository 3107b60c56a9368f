"""Oracle of the attention_softcap task: all scores of a head, for one head after another."""

import torch


def inputs(config, generator):
    """Draw q and k whose products are far below the cap in some heads, and far above in others.

    A few columns of keys are large, as those of a trained model are, and values have a mean.
    """
    batch, heads, group = config["batch"], config["kv_heads"], config["group"]
    seq, dim, dtype = config["seq"], config["dim"], config["dtype"]
    wanted = 2.0 * 20.0 ** torch.rand(batch, heads * group, 1, 1, generator=generator)
    q = torch.randn(batch, heads * group, seq, dim, generator=generator)
    large = torch.where(torch.rand(heads, 1, dim, generator=generator) < 0.05, 3.0, 1.0)
    k = large * torch.randn(batch, heads, seq, dim, generator=generator)
    v = 0.5 + torch.randn(batch, heads, seq, dim, generator=generator)
    q = 16.0 * wanted / dim**0.5 * q / large.square().mean().sqrt()
    return {"q": q.to(dtype), "k": k.to(dtype), "v": v.to(dtype)}


def reference(q, k, v, scale, cap, group, **_):
    """Return y [batch, kv_heads * group, seq, dim] and lse [batch, kv_heads * group, seq]."""
    y, lse = torch.empty_like(q), q.new_empty(q.shape[:-1])
    for sequence in range(q.shape[0]):
        for head in range(q.shape[1]):
            at, own = (sequence, head), (sequence, head // group)
            scores = cap * torch.tanh(scale * q[at] @ k[own].T / cap)
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
            lse[at] = scores.logsumexp(dim=-1)
            y[at] = torch.softmax(scores, dim=-1) @ v[own]
    return {"y": y, "lse": lse}
