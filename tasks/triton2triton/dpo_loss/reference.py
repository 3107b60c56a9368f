"""Oracle of the dpo_loss task: log softmax of one sequence after another."""

import torch
from torch.nn.functional import softplus


def inputs(config, generator):
    """Draw logits that are sure of some tokens, answers behind prompts, and earlier sums.

    The first answer has no token at all if there are several pairs. What the earlier model says
    differs from logits by a few units, as in training. Half of the places that do not count have a
    token.
    """
    pairs, seq, vocab = config["pairs"], config["seq"], config["vocab"]
    spread = 1.0 + torch.rand(2 * pairs, seq, 1, generator=generator)
    logits = spread * torch.randn(2 * pairs, seq, vocab, generator=generator)
    token = torch.randint(0, vocab, (2 * pairs, seq), generator=generator)
    sure = 8.0 * torch.rand(2 * pairs, seq, 1, generator=generator)
    logits = logits.scatter_add_(-1, token[..., None], sure).to(config["dtype"])
    begin = torch.randint(0, 1 + seq // 2, (pairs, 1), generator=generator).repeat(2, 1)
    length = torch.randint(1 + seq // 4, seq + 1, (2 * pairs, 1), generator=generator)
    place = torch.arange(seq)
    mask = (place >= begin) & (place < begin + length)
    kept = torch.rand(2 * pairs, seq, generator=generator) < 0.5
    if pairs > 1:
        mask[0] = False
    logp = torch.stack([summed(*one) for one in zip(logits.float(), token, mask, strict=True)])
    return {
        "logits": logits,
        "token": torch.where(mask | kept, token, -1).to(torch.int32),
        "mask": mask.to(torch.uint8),
        "known": logp + 8.0 * torch.randn(2 * pairs, generator=generator),
    }


def summed(logits, token, mask):
    """The logarithms of one sequence's probabilities, summed over its answer."""
    likely = torch.log_softmax(logits, dim=-1).gather(-1, token.long().clamp_min(0)[:, None])
    return torch.where(mask != 0, likely[:, 0], 0.0).sum()


def reference(logits, token, mask, known, beta, pairs, **_):
    """Return logp [2 * pairs], and margin and loss [pairs]."""
    logp = torch.stack([summed(*one) for one in zip(logits, token, mask, strict=True)])
    gained = logp - known
    margin = beta * (gained[:pairs] - gained[pairs:])
    return {"logp": logp, "margin": margin, "loss": softplus(-margin, threshold=200.0)}
