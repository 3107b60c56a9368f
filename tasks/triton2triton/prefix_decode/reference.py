"""Oracle of the prefix_decode task: the scores of a sequence's shared and own tokens at once."""

import torch


def inputs(config, generator):
    """Draw normal keys and values with a mean a head, a temperature a head, and lengths.

    Own tokens are about as many as there may be in one sequence, and fewer in others. Their values
    are larger than the prompt's, so that a token counts that is left out.
    """
    batch, heads, group = config["batch"], config["kv_heads"], config["group"]
    shared, seq, dim, dtype = (config[name] for name in ("shared", "seq", "dim", "dtype"))
    temperature = 0.3 + 2.0 * torch.rand(batch, heads * group, 1, generator=generator)
    q = temperature * torch.randn(batch, heads * group, dim, generator=generator)
    common = torch.randn(heads, 1, dim, generator=generator)
    middle = torch.randn(heads, 1, dim, generator=generator)
    k_shared = common + torch.randn(heads, shared, dim, generator=generator)
    v_shared = middle + torch.randn(heads, shared, dim, generator=generator)
    k = common + torch.randn(batch, heads, seq, dim, generator=generator)
    v = 2.0 * torch.randn(batch, heads, seq, dim, generator=generator) - middle
    length = torch.randint(1, seq + 1, (batch,), generator=generator)
    nearly = seq - torch.randint(1 + seq // 8, (1,), generator=generator)
    length[torch.randint(batch, (1,), generator=generator)] = nearly
    return {
        "q": q.to(dtype),
        "k_shared": k_shared.to(dtype),
        "v_shared": v_shared.to(dtype),
        "k": k.to(dtype),
        "v": v.to(dtype),
        "length": length.to(torch.int32),
    }


def reference(q, k_shared, v_shared, k, v, length, group, dim, **_):
    """Return y [batch, kv_heads * group, dim]."""
    y = torch.empty_like(q)
    for sequence, count in enumerate(length.tolist()):
        keys = torch.cat((k_shared, k[sequence, :, :count]), dim=1)
        values = torch.cat((v_shared, v[sequence, :, :count]), dim=1)
        scores = q[sequence].unflatten(0, (-1, group)) @ keys.mT / dim**0.5
        y[sequence] = (torch.softmax(scores, dim=-1) @ values).flatten(0, 1)
    return {"y": y}
