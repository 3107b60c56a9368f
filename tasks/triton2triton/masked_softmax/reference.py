"""Oracle of the masked_softmax task: hidden scores at minus infinity."""

import torch


def inputs(config, generator):
    """Draw scores with a temperature a head, lengths, and large scores where nothing is seen.

    Scores that are not masked grow towards the latest keys, as in trained models. One
    sequence is about as long as there is room, so that hardly a key is without a query.
    """
    batch, heads, seq, dtype = (config[name] for name in ("batch", "heads", "seq", "dtype"))
    temperature = 4.0 + 20.0 * torch.rand(1, heads, 1, 1, generator=generator)
    x = temperature * torch.randn(batch, heads, seq, seq, generator=generator)
    near = -4.0 * torch.rand(1, heads, 1, 1, generator=generator)
    place = torch.arange(seq)
    x += near * (place[:, None] - place).abs().float().log1p()
    later = torch.ones(seq, seq, dtype=torch.bool).triu(1)
    x = torch.where(later, x + 50.0, x)
    length = torch.randint((seq + 1) // 2, seq + 1, (batch,), generator=generator)
    length = torch.where(torch.rand(batch, generator=generator) < 0.2, 1 + length // 16, length)
    nearly = seq - torch.randint(1 + seq // 8, (1,), generator=generator)
    length[torch.randint(batch, (1,), generator=generator)] = nearly
    return {"x": x.to(dtype), "length": length.to(torch.int32)}


def reference(x, length, scale, seq, **_):
    """Return y [batch, heads, seq, seq]."""
    place = torch.arange(seq, device=x.device)
    seen = (place <= place[:, None]) & (place < length[:, None, None])
    scores = (x * scale).masked_fill(~seen[:, None], -torch.inf)
    return {"y": torch.softmax(scores, dim=-1)}
