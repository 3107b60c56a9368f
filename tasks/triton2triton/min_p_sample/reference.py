"""Oracle of the min_p_sample task: places in the summed probabilities of what is kept."""

import torch


def inputs(config, generator):
    """Draw logits of rows that are sure and unsure, users' settings, and a seed.

    In half of the rows tokens are numbered by likelihood: a wrong temperature or limit shifts draws
    along the columns. In the others any column is as likely as another, and none can be left out.
    Column 0 is padding, which is never predicted. No share is so near to its limit that rounding
    decides.
    """
    rows, vocab = config["rows"], config["vocab"]
    spread = 0.5 + 1.5 * torch.rand(rows, 1, generator=generator)
    logits = spread * torch.randn(rows, vocab, generator=generator)
    logits[:, 0] = -60.0
    ranked = logits[:, 1:].sort(dim=-1, descending=True).values
    by_likelihood = torch.rand(rows, 1, generator=generator) < 0.5
    logits[:, 1:] = torch.where(by_likelihood, ranked, logits[:, 1:])
    logits = logits.to(config["dtype"])
    temperature = 0.5 + torch.rand(rows, generator=generator)
    min_p = 0.02 + 0.2 * torch.rand(rows, generator=generator)
    p = torch.softmax(logits.double() / temperature[:, None], dim=-1)
    share = p / p.amax(dim=-1, keepdim=True) / min_p[:, None]
    near = ((share - 1).abs() < 1e-5).any(dim=-1)
    return {
        "logits": logits,
        "temperature": temperature,
        "min_p": torch.where(near, 0.9999 * min_p, min_p),
        "seed": torch.randint(2**62, (1,), generator=generator),
    }


def probabilities(logits, temperature):
    """The probability of each column; at temperature 0 only the largest logits have one."""
    heat = temperature[:, None]
    below = logits < logits.amax(dim=-1, keepdim=True)
    cold = torch.zeros_like(logits).masked_fill(below, -torch.inf)
    return torch.softmax(torch.where(heat == 0, cold, logits / heat), dim=-1)


def summed(logits, temperature, min_p):
    """The probability of each column and all before it, among those that are kept."""
    p = probabilities(logits, temperature)
    kept = p >= min_p.clamp_max(1)[:, None] * p.amax(dim=-1, keepdim=True)
    total = (p * kept).cumsum(-1)
    return total / total[:, -1:]


def reference(logits, temperature, min_p, seed, rows, vocab, **_):
    """Return token [rows]."""
    total = summed(logits, temperature, min_p)
    generator = torch.Generator().manual_seed(int(seed))
    drawn = torch.rand(rows, 1, generator=generator, dtype=torch.float64, device="cpu")
    token = torch.searchsorted(total, drawn.to(total), right=True)
    return {"token": token[:, 0].clamp_max(vocab - 1).to(torch.int32)}


def cdf(outputs, logits, temperature, min_p, vocab, **_):
    """Return how probable it is that token is at most what it is."""
    token = outputs["token"]
    total = summed(logits, temperature, min_p)
    known = total.gather(-1, token.clamp(0, vocab - 1)[:, None])[:, 0]
    below = torch.where(token < 0, 0.0, known)
    return {"token": torch.where((token < -1) | (token >= vocab), float("nan"), below)}
