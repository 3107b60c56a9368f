"""Oracle of the differential_attention task: both maps of a head, subtracted before they meet v."""

import torch


def inputs(config, generator):
    """Draw two maps a head that look at partly the same keys, values with a mean, and factors.

    The second queries and keys resemble the first, as those that learnt to cancel noise do.
    """
    batch, heads, seq = config["batch"], config["heads"], config["seq"]
    dim, dtype = config["dim"], config["dtype"]

    def drawn():
        first = torch.randn(batch, heads, seq, dim, generator=generator)
        second = 0.6 * first + 0.8 * torch.randn(batch, heads, seq, dim, generator=generator)
        return torch.stack((first, second), dim=2)

    temperature = 0.3 + 2.0 * torch.rand(batch, heads, 2, 1, 1, generator=generator)
    q, k = temperature * drawn(), drawn()
    v = torch.randn(batch, heads, seq, 2 * dim, generator=generator)
    v += 0.7 * torch.randn(batch, heads, 1, 2 * dim, generator=generator)
    return {
        "q": q.flatten(1, 2).to(dtype),
        "k": k.flatten(1, 2).to(dtype),
        "v": v.to(dtype),
        "lam": 0.2 + 0.6 * torch.rand(heads, generator=generator),
        "weight": 1.0 + 0.3 * torch.randn(2 * dim, generator=generator),
    }


def reference(q, k, v, lam, weight, kept, eps, seq, dim, **_):
    """Return y [batch, heads, seq, 2 * dim]."""
    later = torch.ones(seq, seq, dtype=torch.bool, device=q.device).triu(1)
    y = torch.empty_like(v)
    for sequence in range(v.shape[0]):
        for head in range(v.shape[1]):
            maps = []
            for own in (2 * head, 2 * head + 1):
                scores = q[sequence, own] @ k[sequence, own].T / dim**0.5
                maps.append(torch.softmax(scores.masked_fill(later, -torch.inf), dim=-1))
            d = (maps[0] - lam[head] * maps[1]) @ v[sequence, head]
            r = torch.rsqrt(d.square().mean(dim=-1, keepdim=True) + eps)
            y[sequence, head] = kept * weight * r * d
    return {"y": y}
