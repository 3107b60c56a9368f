"""Oracle of the split_heads task: three permutations."""

import torch


def inputs(config, generator):
    """Draw x [batch, seq, 3, heads, dim], normal, with a scale of its own for each head."""
    batch, seq, heads, dim = (config[name] for name in ("batch", "seq", "heads", "dim"))
    scale = 0.2 + 2.0 * torch.rand(3, heads, 1, generator=generator)
    x = scale * torch.randn(batch, seq, 3, heads, dim, generator=generator)
    return {"x": x.to(config["dtype"])}


def reference(x, **_):
    """Return q and v [batch, heads, seq, dim], and k [batch, heads, dim, seq]."""
    q, k, v = x.unbind(2)
    return {
        "q": q.permute(0, 2, 1, 3).contiguous(),
        "k": k.permute(0, 2, 3, 1).contiguous(),
        "v": v.permute(0, 2, 1, 3).contiguous(),
    }
