"""Oracle of the top_p_sample task: places in the summed probabilities of sorted nuclei."""

import torch


def inputs(config, generator):
    """Draw logits of rows that are sure and unsure, users' settings, and a seed.

    In half of the rows tokens are numbered by likelihood: a wrong temperature or nucleus shifts
    draws along the columns. In the others any column is as likely as another, and none can be left
    out. Most rows are sure of two columns, of which the first is the likelier: a nucleus that lacks
    the last of its columns shifts draws, too. Column 0 is padding, which is never predicted. One
    user in eight wants all columns. No sum is so near to its limit that rounding decides.
    """
    rows, vocab = config["rows"], config["vocab"]
    spread = 0.5 + 2.0 * torch.rand(rows, 1, generator=generator)
    logits = spread * torch.randn(rows, vocab, generator=generator)
    logits[:, 0] = -60.0
    temperature = 0.5 + torch.rand(rows, generator=generator)
    heat = temperature[:, None]
    likely = min(2, vocab - 1)
    place = torch.rand(rows, vocab - 1, generator=generator).topk(likely).indices + 1
    ahead = heat * torch.logsumexp(logits / heat, dim=-1, keepdim=True)
    near = ahead + heat * (2.0 - 0.3 * torch.arange(likely))
    sure = torch.rand(rows, 1, generator=generator) < 0.6
    logits = torch.where(sure, logits.scatter(1, place.sort(dim=-1).values, near), logits)
    ranked = logits[:, 1:].sort(dim=-1, descending=True).values
    by_likelihood = torch.rand(rows, 1, generator=generator) < 0.5
    logits[:, 1:] = torch.where(by_likelihood, ranked, logits[:, 1:])
    logits = logits.to(config["dtype"])
    top_p = (0.3 + 0.8 * torch.rand(rows, generator=generator)).clamp_max(1.0)
    p = torch.softmax(logits.double() / temperature[:, None], dim=-1)
    total = p.sort(dim=-1, descending=True).values.cumsum(-1)
    near = ((total - top_p[:, None]).abs() < 1e-6).any(dim=-1) & (top_p < 1)
    return {
        "logits": logits,
        "temperature": temperature,
        "top_p": torch.where(near, 0.9999 * top_p, top_p),
        "seed": torch.randint(2**62, (1,), generator=generator),
    }


def probabilities(logits, temperature):
    """The probability of each column; at temperature 0 only the largest logits have one."""
    heat = temperature[:, None]
    below = logits < logits.amax(dim=-1, keepdim=True)
    cold = torch.zeros_like(logits).masked_fill(below, -torch.inf)
    return torch.softmax(torch.where(heat == 0, cold, logits / heat), dim=-1)


def summed(logits, temperature, top_p):
    """The probability of each column and all before it, within the nucleus."""
    p = probabilities(logits, temperature)
    falling, order = p.sort(dim=-1, descending=True)
    likelier = falling.cumsum(-1) - falling
    same = torch.searchsorted(-falling, -falling).clamp_max(p.shape[1] - 1)  # for NaN
    likelier = likelier.gather(-1, same)  # of the first of those that are equally likely
    inside = (likelier < top_p[:, None]) | (top_p >= 1)[:, None] | (falling == falling[:, :1])
    total = (p * torch.zeros_like(inside).scatter(-1, order, inside)).cumsum(-1)
    return total / total[:, -1:]


def reference(logits, temperature, top_p, seed, rows, vocab, **_):
    """Return token [rows]."""
    total = summed(logits, temperature, top_p)
    generator = torch.Generator().manual_seed(int(seed))
    drawn = torch.rand(rows, 1, generator=generator, dtype=torch.float64, device="cpu")
    token = torch.searchsorted(total, drawn.to(total), right=True)
    return {"token": token[:, 0].clamp_max(vocab - 1).to(torch.int32)}


def cdf(outputs, logits, temperature, top_p, vocab, **_):
    """Return how probable it is that token is at most what it is."""
    token = outputs["token"]
    total = summed(logits, temperature, top_p)
    known = total.gather(-1, token.clamp(0, vocab - 1)[:, None])[:, 0]
    below = torch.where(token < 0, 0.0, known)
    return {"token": torch.where((token < -1) | (token >= vocab), float("nan"), below)}
