"""Oracle and PyTorch baseline of the logit_penalties task."""

import torch


def inputs(config, generator):
    """Draw logits of rows that are sure and unsure, counts of a text, and users' settings.

    About 1 token in 30 occurs in the text, and a third of the likely ones. Half of them occur once,
    a few up to 255 times.
    """
    rows, vocab = config["rows"], config["vocab"]
    spread = 1.0 + 2.0 * torch.rand(rows, 1, generator=generator)
    logits = spread * torch.randn(rows, vocab, generator=generator) + 1.0
    occurs = torch.rand(rows, vocab, generator=generator) < 0.03 + 0.3 * (logits > 2.0 * spread)
    often = (1.0 / (0.002 + torch.rand(rows, vocab, generator=generator))).clamp_max(255.0)

    def between(low, high):
        return low + (high - low) * torch.rand(rows, generator=generator)

    return {
        "logits": logits.to(config["dtype"]),
        "seen": (often.floor().clamp_min(1.0) * occurs).to(torch.uint8),
        "repetition": between(1.0, 1.4),
        "presence": between(-0.2, 0.8),
        "frequency": between(0.0, 0.3),
        "temperature": between(0.3, 1.3),
    }


def reference(logits, seen, repetition, presence, frequency, temperature, **_):
    """Return probability [rows, vocab]."""
    factor = torch.where(logits > 0, 1.0 / repetition[:, None], repetition[:, None])
    less = presence[:, None] + frequency[:, None] * seen
    changed = torch.where(seen > 0, logits * factor - less, logits) / temperature[:, None]
    return {"probability": torch.exp(changed - torch.logsumexp(changed, dim=-1, keepdim=True))}


def baseline(logits, seen, repetition, presence, frequency, temperature, **_):
    """The operations one by one, in float32, and PyTorch's softmax."""
    values = logits.float()
    occurs = seen > 0
    scaled = torch.where(values > 0, values / repetition[:, None], values * repetition[:, None])
    values = torch.where(occurs, scaled, values)
    values = values.addcmul(frequency[:, None], seen.float(), value=-1)
    values = values.addcmul(presence[:, None], occurs.float(), value=-1)
    return {"probability": torch.softmax(values / temperature[:, None], dim=-1)}
