"""Oracle of the attention_varlen task: each sequence by itself, with all of its scores."""

import torch


def inputs(config, generator):
    """Draw normal q, k and v with a temperature a head, and lengths from none to longest.

    One sequence has the longest chunk; some have no queries. About half of those with queries
    have a past, which is of any length.
    """
    queries, keys, batch = config["queries"], config["keys"], config["batch"]
    longest, heads, group = config["longest"], config["kv_heads"], config["group"]
    dim, dtype = config["dim"], config["dtype"]
    share = torch.rand(batch, generator=generator) ** 2
    chunk = torch.zeros(batch, dtype=torch.int64)
    chunk[torch.randint(0, batch, (1,), generator=generator)] = longest
    left = queries - longest
    for place in torch.argsort(share, descending=True).tolist():
        if chunk[place] == 0:
            wanted = int(2.0 * queries / batch * share[place])
            chunk[place] = min(left, longest, wanted)
            left -= int(chunk[place])
    for place in range(batch):
        more = min(left, longest - int(chunk[place]))
        chunk[place] += more
        left -= more
    liked = torch.rand(batch, generator=generator) + 0.1
    liked *= (torch.rand(batch, generator=generator) < 0.5) & (chunk > 0)
    if liked.sum() == 0:
        liked = (chunk > 0).float()
    past = (liked / liked.sum() * (keys - queries)).long()
    past[torch.argmax(liked)] += keys - queries - past.sum()
    temperature = 0.3 + 2.0 * torch.rand(heads * group, 1, generator=generator)
    q = temperature * torch.randn(queries, heads * group, dim, generator=generator)
    k = torch.randn(keys, heads, dim, generator=generator)
    v = 0.5 + torch.randn(keys, heads, dim, generator=generator)
    nothing = torch.zeros(1, dtype=torch.int64)
    return {
        "q": q.to(dtype),
        "k": k.to(dtype),
        "v": v.to(dtype),
        "begin_q": torch.cat((nothing, chunk.cumsum(0))).to(torch.int32),
        "begin_k": torch.cat((nothing, (chunk + past).cumsum(0))).to(torch.int32),
    }


def reference(q, k, v, begin_q, begin_k, group, dim, **_):
    """Return y [queries, kv_heads * group, dim]."""
    y = torch.empty_like(q)
    ends_q, ends_k = begin_q.tolist(), begin_k.tolist()
    for sequence in range(len(ends_q) - 1):
        rows = slice(ends_q[sequence], ends_q[sequence + 1])
        seen = slice(ends_k[sequence], ends_k[sequence + 1])
        m, n = rows.stop - rows.start, seen.stop - seen.start
        later = torch.ones(m, n, dtype=torch.bool, device=q.device).triu(n - m + 1)
        for head in range(q.shape[1]):
            scores = q[rows, head] @ k[seen, head // group].T / dim**0.5
            weights = torch.softmax(scores.masked_fill(later, -torch.inf), dim=-1)
            y[rows, head] = weights @ v[seen, head // group]
    return {"y": y}
