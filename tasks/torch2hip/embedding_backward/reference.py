"""Oracle and PyTorch baseline of the embedding_backward task."""

import torch


def inputs(config, generator):
    """Draw gradients with a size a token, and words as a text has them.

    A word's frequency falls with its rank, and ranks lie anywhere in the table; a tenth of the
    tokens is padding, if that is a word at all.
    """
    tokens, vocab, cols = config["tokens"], config["vocab"], config["cols"]
    size = 0.2 + torch.rand(tokens, 1, generator=generator)
    dy = size * torch.randn(tokens, cols, generator=generator)
    rank = (vocab ** torch.rand(tokens, generator=generator)).long() - 1
    word = torch.randperm(vocab, generator=generator)[rank.clamp(0, vocab - 1)]
    padded = torch.rand(tokens, generator=generator) < 0.1
    is_word = 0 <= config["padding"] < vocab
    token = word.masked_fill(padded, config["padding"]) if is_word else word
    return {"dy": dy.to(config["dtype"]), "token": token}


def reference(dy, token, padding, vocab, **_):
    """Return dweight [vocab, cols]."""
    known = dy.masked_fill((token == padding)[:, None], 0.0)
    return {"dweight": dy.new_zeros(vocab, dy.shape[1]).index_add_(0, token, known)}


def baseline(dy, token, padding, vocab, **_):
    """PyTorch's own kernel in float32, which sorts the tokens."""
    backward = torch.ops.aten.embedding_dense_backward
    return {"dweight": backward(dy.float(), token, vocab, padding, scale_grad_by_freq=False)}
