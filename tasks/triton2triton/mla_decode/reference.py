"""Oracle of the mla_decode task: masked scores of whole sequences, and their softmax."""

import math

import torch


def inputs(config, generator):
    """Draw queries with a temperature a head, latent vectors of unequal columns, and lengths.

    One sequence is about as long as the cache. After the ends the cache has values that are larger
    than those before them.
    """
    batch, heads, context = config["batch"], config["heads"], config["context"]
    wide = config["rank"] + config["rope"]
    temperature = 0.3 + 2.0 * torch.rand(batch, heads, 1, generator=generator)
    q = temperature * torch.randn(batch, heads, wide, generator=generator)
    size = 0.3 + torch.rand(wide, generator=generator)
    cache = size * torch.randn(batch, context, wide, generator=generator)
    cache[..., : config["rank"]] += 0.2
    length = torch.randint(1, context + 1, (batch,), generator=generator)
    nearly = context - torch.randint(1 + context // 8, (1,), generator=generator)
    length[torch.randint(batch, (1,), generator=generator)] = nearly
    after = torch.arange(context) >= length[:, None]
    cache = torch.where(after[..., None], 8.0 * cache, cache)
    dtype = config["dtype"]
    return {"q": q.to(dtype), "cache": cache.to(dtype), "length": length.to(torch.int32)}


def reference(q, cache, length, scale, rank, context, **_):
    """Return y [batch, heads, rank]."""
    scores = scale * torch.einsum("bhd,btd->bht", q, cache)
    after = torch.arange(context, device=q.device) >= length[:, None]
    weights = torch.softmax(scores.masked_fill(after[:, None], -math.inf), dim=-1)
    return {"y": torch.einsum("bht,btd->bhd", weights, cache[..., :rank])}
