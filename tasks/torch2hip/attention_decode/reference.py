"""Oracle and PyTorch baseline of the attention_decode task."""

import math

import torch
from torch.nn import functional


def inputs(config, generator):
    """Draw q [batch, heads, dim] and the caches k, v [batch, heads, ctx, dim], normal.

    q has a temperature per head, so that some heads attend to nearly everything and
    others to a handful of keys; v has an offset, so that weights must sum to one.
    """
    batch, heads, ctx, dim = (config[name] for name in ("batch", "heads", "ctx", "dim"))
    dtype = config["dtype"]
    temperature = 0.5 + 3.0 * torch.rand(batch, heads, 1, generator=generator)
    q = torch.randn(batch, heads, dim, generator=generator) * temperature
    k = torch.randn(batch, heads, ctx, dim, generator=generator)
    v = torch.randn(batch, heads, ctx, dim, generator=generator) + 0.5
    return {"q": q.to(dtype), "k": k.to(dtype), "v": v.to(dtype)}


def reference(q, k, v, **_):
    """Return y [batch, heads, dim]: the mean of v under softmax(q . k / sqrt(dim))."""
    scores = torch.einsum("bhd,bhcd->bhc", q, k) / math.sqrt(q.shape[-1])
    weights = torch.softmax(scores, dim=-1)
    return {"y": torch.einsum("bhc,bhcd->bhd", weights, v)}


def baseline(q, k, v, **_):
    """PyTorch's fused attention with a query length of one."""
    return {"y": functional.scaled_dot_product_attention(q.unsqueeze(2), k, v).squeeze(2)}
