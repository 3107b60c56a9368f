"""Oracle of the gated_delta_rule task: some positions at a time, for all heads at once."""

import torch

CHUNK = 64


def inputs(config, generator):
    """Draw keys that repeat, values, and gates that differ by head.

    Keys crowd around eight directions a head, so that later values replace earlier ones. Some
    heads forget within a few positions, and others remember over thousands.
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
    length = 9.0 * torch.rand(heads, generator=generator)
    gate = torch.randn(2, batch, seq, heads, generator=generator)
    return {
        "q": q.to(dtype),
        "k": k.to(dtype),
        "v": v.to(dtype),
        "keep": (length + gate[0]).to(dtype),
        "learn": (1.5 * gate[1]).to(dtype),
    }


def reference(q, k, v, keep, learn, seq, keys, values, **_):
    """Return y [batch, seq, heads, values] and last [batch, heads, keys, values].

    Within some positions, what each changes follows from what those before it have changed: a
    triangular system.
    """
    q, k = (x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt() for x in (q, k))
    state = v.new_zeros(v.shape[0], v.shape[2], keys, values)
    y = torch.empty_like(v)
    for first in range(0, seq, CHUNK):
        part = slice(first, first + CHUNK)
        qs, ks, vs = (x[:, part].transpose(1, 2) for x in (q, k, v))
        rate = torch.sigmoid(learn[:, part]).mT[..., None]
        kept = torch.nn.functional.logsigmoid(keep[:, part]).mT.cumsum(-1)  # as logarithms
        since = torch.exp((kept[..., None] - kept[..., None, :]).tril())
        whole = torch.exp(kept)[..., None]
        before = (rate * since * (ks @ ks.mT)).tril(-1)
        new = rate * (vs - whole * (ks @ state))
        change = torch.linalg.solve_triangular(before, new, upper=False, unitriangular=True)
        y[:, part] = (whole * (qs @ state) + (since * (qs @ ks.mT)).tril() @ change).transpose(1, 2)
        left = torch.exp(kept[..., -1:] - kept)[..., None]
        state = whole[..., -1:, :] * state + (left * ks).mT @ change
    return {"y": y, "last": state}
