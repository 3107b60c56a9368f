"""Oracle of the gumbel_sample task: places in summed probabilities, and the sums themselves."""

import torch


def inputs(config, generator):
    """Draw logits of rows that are sure and unsure, what is allowed, and a seed.

    In half of the rows tokens are numbered by likelihood: a wrong temperature, or leaving out what
    is unlikely, shifts draws along the columns. In the others any column is as likely as another,
    and none can be left out. Any row may forbid any of its columns, also likely ones: about half of
    them in every fourth row, a few in the others. Column 0 is padding, which hardly a row may draw.
    """
    rows, vocab = config["rows"], config["vocab"]
    spread = 0.5 + 2.0 * torch.rand(rows, 1, generator=generator)
    logits = spread * torch.randn(rows, vocab, generator=generator)
    ranked = logits[:, 1:].sort(dim=-1, descending=True).values
    by_likelihood = torch.rand(rows, 1, generator=generator) < 0.5
    logits[:, 1:] = torch.where(by_likelihood, ranked, logits[:, 1:])
    share = torch.where(torch.rand(rows, 1, generator=generator) < 0.25, 0.5, 0.03)
    forbidden = torch.rand(rows, vocab, generator=generator) < share
    forbidden[:, 0] = torch.rand(rows, generator=generator) < 0.95
    kept = torch.randint(vocab, (rows, 1), generator=generator)
    forbidden.scatter_(1, kept, value=False)
    return {
        "logits": logits.to(config["dtype"]),
        "allowed": (~forbidden).to(torch.uint8),
        "seed": torch.randint(2**62, (1,), generator=generator),
    }


def reference(logits, allowed, seed, temperature, rows, vocab, **_):
    """Return token [rows]."""
    total = summed(logits, allowed, temperature)
    generator = torch.Generator().manual_seed(int(seed))
    drawn = torch.rand(rows, 1, generator=generator, dtype=torch.float64, device="cpu")
    token = torch.searchsorted(total, drawn.to(total.device) * total[:, -1:], right=True)
    return {"token": token[:, 0].clamp_max(vocab - 1).to(torch.int32)}


def summed(logits, allowed, temperature):
    """The probability of each column and all before it."""
    likely = (logits / temperature).masked_fill(allowed == 0, -torch.inf)
    return torch.softmax(likely, dim=-1).cumsum(-1)


def cdf(outputs, logits, allowed, temperature, vocab, **_):
    """Return how probable it is that token is at most what it is."""
    token = outputs["token"]
    total = summed(logits, allowed, temperature)
    known = total.gather(-1, token.clamp(0, vocab - 1)[:, None])[:, 0]
    below = torch.where(token < 0, 0.0, known)
    return {"token": torch.where((token < -1) | (token >= vocab), float("nan"), below)}
