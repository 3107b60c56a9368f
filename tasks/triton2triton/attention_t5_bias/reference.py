"""Oracle of the attention_t5_bias task: each sequence by itself, with a whole matrix of biases."""

import torch


def inputs(config, generator):
    """Draw q and k whose products need no scale, values with a mean, biases, and lengths.

    Half of the buckets are distances, and the others grow by a constant factor, up to a distance
    from which on the last one counts. Biases favour near keys in some heads, and keys of one side
    in others. The last sequence has no padding. Buckets are numbered in any order, and a few
    distances have one of their own choice.
    """
    batch, heads, seq = config["batch"], config["heads"], config["seq"]
    dim, kinds, dtype = config["dim"], config["kinds"], config["dtype"]
    sharp = 0.3 + 2.0 * torch.rand(batch, heads, 1, 1, generator=generator)
    q = sharp / dim**0.5 * torch.randn(batch, heads, seq, dim, generator=generator)
    k = torch.randn(batch, heads, seq, dim, generator=generator)
    v = 0.5 + torch.randn(batch, heads, seq, dim, generator=generator)
    exact = (kinds + 1) // 2
    farthest = 2 * exact + 64.0 + 128.0 * torch.rand((), generator=generator)
    apart = torch.arange(seq, dtype=torch.float64)
    grown = torch.log((apart / exact).clamp_min(1.0)) / torch.log(farthest / exact)
    bucket = torch.where(apart < exact, apart, exact + grown * (kinds - exact))
    odd = torch.rand(seq, generator=generator) < 0.1
    bucket = torch.where(odd, torch.randint(kinds, (seq,), generator=generator), bucket.long())
    number = torch.randperm(kinds, generator=generator)
    side = 1.5 * torch.randn(2, 1, heads, generator=generator)
    slope = 4.0 * torch.rand(heads, generator=generator) / kinds
    table = side - slope * torch.arange(kinds)[:, None]
    table = table + 0.5 * torch.randn(2, kinds, heads, generator=generator)
    length = torch.randint((seq + 3) // 4, seq + 1, (batch,), generator=generator)
    length[-1] = seq
    return {
        "q": q.to(dtype),
        "k": k.to(dtype),
        "v": v.to(dtype),
        "bucket": number[bucket.clamp_max(kinds - 1)].to(torch.int32),
        "table": table[:, number.argsort()].flatten(0, 1),
        "length": length.to(torch.int32),
    }


def reference(q, k, v, bucket, table, length, seq, kinds, **_):
    """Return y [batch, heads, seq, dim]."""
    place = torch.arange(seq, device=q.device)
    apart = place - place[:, None]
    bias = table[bucket[apart.abs()].long() + kinds * (apart > 0)]
    y = torch.zeros_like(q)
    for sequence, count in enumerate(length.tolist()):
        for head in range(q.shape[1]):
            at = sequence, head, slice(0, count)
            scores = q[at] @ k[at].T + bias[:count, :count, head]
            y[at] = torch.softmax(scores, dim=-1) @ v[at]
    return {"y": y}
