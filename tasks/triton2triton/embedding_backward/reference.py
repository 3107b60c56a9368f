"""Oracle of the embedding_backward task: rows of gradients added where their tokens are."""

import torch


def inputs(config, generator):
    """Draw tokens as a text has them, few of them often and most of them seldom, and dy.

    A token's rank is that of Zipf's law, more or less; which token has which rank is drawn.
    """
    count, vocab, cols = config["count"], config["vocab"], config["cols"]
    rank = (vocab + 1.0) ** torch.rand(count, generator=generator, dtype=torch.float64) - 1.0
    names = torch.randperm(vocab, generator=generator)
    token = names[rank.long().clamp(0, vocab - 1)]
    size = 0.2 + torch.rand(count, 1, generator=generator)
    dy = size * torch.randn(count, cols, generator=generator)
    return {"token": token, "dy": dy.to(config["dtype"])}


def reference(token, dy, vocab, **_):
    """Return dtable [vocab, cols]."""
    return {"dtable": dy.new_zeros(vocab, dy.shape[1]).index_add_(0, token, dy)}
