"""Oracle of the attention_alibi task: each sequence by itself, with all of its scores."""

from itertools import pairwise

import torch


def inputs(config, generator):
    """Draw normal q, k and v, slopes of a half to 1/256, and lengths: one longest, others shorter.

    Lengths differ by a factor of ten, and some are zero.
    """
    tokens, batch, longest = config["tokens"], config["batch"], config["longest"]
    heads, dim, dtype = config["heads"], config["dim"], config["dtype"]
    share = torch.rand(batch, generator=generator) ** 2
    length = torch.zeros(batch, dtype=torch.int64)
    length[torch.randint(0, batch, (1,), generator=generator)] = longest
    left = tokens - longest
    for place in torch.argsort(share, descending=True).tolist():
        if length[place] == 0:
            wanted = int(2.0 * tokens / batch * share[place])
            length[place] = min(left, longest, wanted)
            left -= int(length[place])
    for place in range(batch):
        more = min(left, longest - int(length[place]))
        length[place] += more
        left -= more
    begin = torch.cat((torch.zeros(1, dtype=torch.int64), length.cumsum(0)))
    temperature = 0.3 + 2.0 * torch.rand(heads, 1, generator=generator)
    q = temperature * torch.randn(tokens, heads, dim, generator=generator)
    k = torch.randn(tokens, heads, dim, generator=generator)
    v = 0.5 + torch.randn(tokens, heads, dim, generator=generator)
    slope = torch.exp2(-1.0 - 7.0 * torch.rand(heads, generator=generator))
    return {
        "q": q.to(dtype),
        "k": k.to(dtype),
        "v": v.to(dtype),
        "begin": begin.to(torch.int32),
        "slope": slope,
    }


def reference(q, k, v, begin, slope, **_):
    """Return y [tokens, heads, dim]."""
    y = torch.empty_like(q)
    ends = begin.tolist()
    for first, last in pairwise(ends):
        place = torch.arange(last - first, device=q.device, dtype=q.dtype)
        apart = (place[:, None] - place).abs()
        rows = slice(first, last)
        for head in range(q.shape[1]):
            scores = q[rows, head] @ k[rows, head].T / q.shape[-1] ** 0.5 - slope[head] * apart
            y[rows, head] = torch.softmax(scores, dim=-1) @ v[rows, head]
    return {"y": y}
