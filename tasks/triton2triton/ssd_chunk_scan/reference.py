"""Oracle of the ssd_chunk_scan task: whole matrices of each chunk, one head after another."""

import torch


def inputs(config, generator):
    """Draw projections of spread 1 with a size a head, and steps and decays of a layer.

    Some heads keep what the whole chunk had, and others only the latest positions. States are
    about as large as what a chunk adds.
    """
    batch, chunks, size = config["batch"], config["chunks"], config["size"]
    heads, dim, states, dtype = (config[name] for name in ("heads", "dim", "states", "dtype"))
    seq = chunks * size
    large = 0.3 + torch.rand(heads, 1, generator=generator)
    x = large * (0.3 + torch.randn(batch, seq, heads, dim, generator=generator))
    b = torch.randn(batch, seq, states, generator=generator) / states**0.25
    c = torch.randn(batch, seq, states, generator=generator) / states**0.25
    usual = 10.0 ** (2.0 * torch.rand(heads, 1, 1, generator=generator) - 2.5)
    noise = torch.randn(batch, heads, chunks, size, generator=generator)
    delta = usual * torch.exp(0.7 * noise)
    rate = 1.0 + 15.0 * torch.rand(heads, 1, 1, generator=generator)
    state = torch.randn(batch, chunks, heads, dim, states, generator=generator) / states**0.25
    return {
        "x": x.to(dtype),
        "b": b.to(dtype),
        "c": c.to(dtype),
        "delta": delta,
        "total": -(rate * delta).cumsum(-1),
        "state": state.to(dtype),
        "d": 0.5 + 0.5 * torch.rand(heads, generator=generator),
    }


def reference(x, b, c, delta, total, state, d, chunks, size, **_):
    """Return y [batch, chunks * size, heads, dim]."""
    split = x.unflatten(1, (chunks, size))
    b, c = b.unflatten(1, (chunks, size)), c.unflatten(1, (chunks, size))
    both = c @ b.mT
    y = torch.empty_like(split)
    for head in range(x.shape[2]):
        sums = total[:, head]
        fade = torch.exp((sums[..., None] - sums[..., None, :]).clamp_max(0.0)).tril()
        factor = fade * both * delta[:, head, :, None]
        kept = torch.exp(sums.clamp_max(0.0))[..., None] * (c @ state[:, :, head].mT)
        own = split[..., head, :]
        y[..., head, :] = kept + factor @ own + d[head] * own
    return {"y": y.flatten(1, 2)}
