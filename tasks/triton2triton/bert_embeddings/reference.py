"""Oracle of the bert_embeddings task: lookups, and the variance as PyTorch has it."""

import torch


def inputs(config, generator):
    """Draw tokens by a Zipf law, two or more segments a sequence, and tables of trained sizes.

    Some columns of the tables are ten times as large as the others, as in trained encoders.
    """
    batch, seq, cols, dtype = (config[name] for name in ("batch", "seq", "cols", "dtype"))
    vocab, places, kinds = config["vocab"], config["places"], config["kinds"]
    likely = 1.0 / (1.0 + torch.arange(vocab, dtype=torch.float32))
    drawn = torch.multinomial(likely, batch * seq, replacement=True, generator=generator)
    number = torch.randperm(vocab, generator=generator)
    turn = torch.randint(0, seq, (batch, kinds - 1), generator=generator)
    segment = (torch.arange(seq) >= turn[:, :, None]).sum(dim=1)
    loud = 1.0 + 9.0 * (torch.rand(cols, generator=generator) < 0.02)
    sizes = {"word": (vocab, 0.5), "place": (places, 0.2), "kind": (kinds, 0.2)}
    tables = {
        name: (size * loud * torch.randn(rows, cols, generator=generator)).to(dtype)
        for name, (rows, size) in sizes.items()
    }
    return {
        "token": number[drawn].reshape(batch, seq).to(torch.int32),
        "segment": segment.to(torch.int32),
        **tables,
        "weight": (1.0 + 0.2 * torch.randn(cols, generator=generator)).to(dtype),
        "bias": (0.3 * torch.randn(cols, generator=generator)).to(dtype),
    }


def reference(token, segment, word, place, kind, weight, bias, eps, seq, **_):
    """Return y [batch, seq, cols], mean and rstd [batch, seq]."""
    e = word[token.long()] + place[:seq] + kind[segment.long()]
    mean = e.mean(dim=-1)
    rstd = torch.rsqrt(e.var(dim=-1, correction=0) + eps)
    normal = (e - mean[..., None]) * rstd[..., None]
    return {"y": normal * weight + bias, "mean": mean, "rstd": rstd}
