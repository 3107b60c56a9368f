"""Oracle of the decode_kv_int8 task: the caches as numbers, and all scores at once."""

import torch


def inputs(config, generator):
    """Draw queries with a temperature a head, and caches as 8 bits hold normal keys and values.

    Keys share an offset, as keys after a rotary embedding do in their slow columns. Most
    lengths are from a quarter of the cache on; tokens beyond them have scales of their own, too.
    One sequence nearly fills the cache.
    """
    batch, heads, group = config["batch"], config["kv_heads"], config["group"]
    seq, dim = config["seq"], config["dim"]
    temperature = 0.3 + 2.0 * torch.rand(batch, heads * group, 1, generator=generator)
    q = temperature * torch.randn(batch, heads * group, dim, generator=generator)
    common = torch.randn(batch, heads, 1, dim, generator=generator)
    k = common + torch.randn(batch, heads, seq, dim, generator=generator)
    size = 0.3 + torch.rand(batch, heads, seq, 1, generator=generator)
    v = size * (0.5 + torch.randn(batch, heads, seq, dim, generator=generator))
    k_scale, v_scale = k.abs().amax(dim=-1) / 127, v.abs().amax(dim=-1) / 127
    length = torch.randint((seq + 3) // 4, seq + 1, (batch,), generator=generator)
    length = torch.where(torch.rand(batch, generator=generator) < 0.2, 1 + length // 16, length)
    nearly = seq - torch.randint(1 + seq // 8, (1,), generator=generator)
    length[torch.randint(batch, (1,), generator=generator)] = nearly
    return {
        "q": q.to(config["dtype"]),
        "k": (k / k_scale[..., None]).round().to(torch.int8),
        "v": (v / v_scale[..., None]).round().to(torch.int8),
        "k_scale": k_scale,
        "v_scale": v_scale,
        "length": length.to(torch.int32),
    }


def reference(q, k, v, k_scale, v_scale, length, group, seq, dim, **_):
    """Return y [batch, kv_heads * group, dim]."""
    keys = k.to(q.dtype) * k_scale[..., None]
    values = v.to(q.dtype) * v_scale[..., None]
    scores = torch.einsum("bhgd,bhsd->bhgs", q.unflatten(1, (-1, group)), keys) / dim**0.5
    known = torch.arange(seq, device=q.device) < length[:, None]
    weights = torch.softmax(scores.masked_fill(~known[:, None, None], -torch.inf), dim=-1)
    return {"y": torch.einsum("bhgs,bhsd->bhgd", weights, values).flatten(1, 2)}
