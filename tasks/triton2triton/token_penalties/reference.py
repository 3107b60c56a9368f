"""Oracle of the token_penalties task: tokens counted, then all logits changed."""

import torch


def inputs(config, generator):
    """Draw logits, texts in which some tokens recur often, and users' settings.

    The first row has no generated token, and the last one no prompt and no room
    left. Likely tokens occur in the
    text more often than others, as in a text that repeats itself.
    """
    rows, vocab, history = config["rows"], config["vocab"], config["history"]
    spread = 1.0 + 2.0 * torch.rand(rows, 1, generator=generator)
    rank = (vocab + 1.0) ** torch.rand(rows, history, generator=generator, dtype=torch.float64)
    name = torch.argsort(torch.rand(rows, vocab, generator=generator), dim=-1)
    token = name.gather(-1, (rank - 1.0).long().clamp(0, vocab - 1))
    logits = spread * torch.randn(rows, vocab, generator=generator) + 0.5
    prior = token[:, : history // 4]
    raised = 3.0 * spread * torch.rand(prior.shape, generator=generator)
    logits.scatter_reduce_(-1, prior, logits.gather(-1, prior) + raised, "amax")
    end = torch.randint(1 + history // 2, history + 1, (rows,), generator=generator)
    end[-1] = history
    prompt = (end * torch.rand(rows, generator=generator)).long()
    prompt[-1], prompt[0] = 0, end[0]
    token[torch.arange(history) >= end[:, None]] = -1

    def between(low, high):
        return low + (high - low) * torch.rand(rows, generator=generator)

    return {
        "logits": logits.to(config["dtype"]),
        "token": token.to(torch.int32),
        "prompt": prompt.to(torch.int32),
        "end": end.to(torch.int32),
        "repetition": between(1.0, 1.5),
        "presence": between(-0.2, 1.0),
        "frequency": between(0.05, 0.5),
    }


def reference(logits, token, prompt, end, repetition, presence, frequency, **_):
    """Return changed [rows, vocab]."""
    place = torch.arange(token.shape[1], device=token.device)
    inside, generated = place < end[:, None], place >= prompt[:, None]
    known = token.long().clamp_min(0)
    every = torch.zeros_like(logits).scatter_add(-1, known, inside.to(logits.dtype))
    own = torch.zeros_like(logits).scatter_add(-1, known, (inside & generated).to(logits.dtype))
    positive = logits / repetition[:, None]
    scaled = torch.where(logits > 0, positive, logits * repetition[:, None])
    scaled = torch.where(every > 0, scaled, logits)
    less = presence[:, None] + frequency[:, None] * own
    return {"changed": torch.where(own > 0, scaled - less, scaled)}
