"""Oracle of the top_k_filter task: the k-th of the sorted logits, and a softmax from there on."""

import torch


def inputs(config, generator):
    """Draw logits of rows that are sure and unsure, and users' k: mostly small, sometimes all.

    A few tokens of each row stand out, so that what is kept has most of the probability. In the
    last row the last token, which ends a text, is the likeliest.
    """
    rows, vocab = config["rows"], config["vocab"]
    spread = 0.5 + 2.0 * torch.rand(rows, 1, generator=generator)
    logits = spread * torch.randn(rows, vocab, generator=generator)
    logits += 6.0 * (torch.rand(rows, vocab, generator=generator) < 8.0 / vocab)
    logits[-1, -1] = logits[-1].amax() + torch.rand(1, generator=generator)
    k = (vocab + 1.0) ** (torch.rand(rows, generator=generator) ** 1.5)
    k[torch.rand(rows, generator=generator) < 0.1] = vocab
    return {
        "logits": logits.to(config["dtype"]),
        "k": k.clamp(1, vocab).to(torch.int32),
    }


def reference(logits, k, **_):
    """Return probability [rows, vocab].

    Doubles are compared whatever the dtype: the judge moves the results of each step in float32 to
    find how far rounding goes, and sorting must not move a logit away from itself.
    """
    exact = logits.double()
    falling = exact.sort(dim=-1, descending=True).values
    least = falling.gather(-1, k.long()[:, None] - 1)
    return {"probability": torch.softmax(logits.masked_fill(exact < least, -torch.inf), dim=-1)}
