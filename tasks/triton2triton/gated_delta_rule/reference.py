"""Oracle of the gated_delta_rule task: one position after another, for all heads at once."""

import torch


def inputs(config, generator):
    """Draw keys that repeat, values, and gates that differ by head.

    Keys crowd around eight directions a head, so that later values replace earlier ones. Some
    heads forget within a few positions and others hardly.
    """
    batch, seq, heads = config["batch"], config["seq"], config["heads"]
    keys, values, dtype = config["keys"], config["values"], config["dtype"]
    topics = torch.randn(heads, 8, keys, generator=generator)
    which = torch.randint(0, 8, (batch, seq, heads), generator=generator)
    k = topics[torch.arange(heads), which] + torch.randn(
        batch, seq, heads, keys, generator=generator
    )
    q = 2.0 * topics[torch.arange(heads), which.roll(1, 1)]
    q = q + torch.randn(batch, seq, heads, keys, generator=generator)
    v = 2.0 * torch.randn(batch, seq, heads, values, generator=generator)
    length = 6.0 * torch.rand(heads, generator=generator)
    gate = torch.randn(2, batch, seq, heads, generator=generator)
    return {
        "q": q.to(dtype),
        "k": k.to(dtype),
        "v": v.to(dtype),
        "keep": (length + gate[0]).to(dtype),
        "learn": (1.5 * gate[1]).to(dtype),
    }


def reference(q, k, v, keep, learn, seq, keys, values, **_):
    """Return y [batch, seq, heads, values] and last [batch, heads, keys, values]."""
    q, k = (x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt() for x in (q, k))
    state = v.new_zeros(v.shape[0], v.shape[2], keys, values)
    ys = []
    for t in range(seq):
        state = torch.sigmoid(keep[:, t, :, None, None]) * state
        known = torch.einsum("bhk,bhkv->bhv", k[:, t], state)
        change = torch.sigmoid(learn[:, t, :, None]) * (v[:, t] - known)
        state = state + k[:, t, :, :, None] * change[:, :, None]
        ys.append(torch.einsum("bhk,bhkv->bhv", q[:, t], state))
    return {"y": torch.stack(ys, dim=1), "last": state}
