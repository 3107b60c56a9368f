"""Oracle and checker of the deepseek_router task: sorted groups, then sorted experts."""

import torch

NEAR = 1e-5


def inputs(config, generator):
    """Draw logits with experts and groups that are liked more, and biases that work against it.

    A token likes some groups more than others. Biases decide in many places.
    """
    tokens, groups, each = config["tokens"], config["groups"], config["each"]
    liked = torch.randn(groups, each, generator=generator)
    liked += torch.randn(groups, 1, generator=generator)
    topic = torch.randn(tokens, groups, 1, generator=generator) - 1.0
    own = 1.2 * torch.randn(tokens, groups, each, generator=generator)
    bias = 0.1 * torch.randn(groups, each, generator=generator) - 0.12 * liked
    return {"logits": (liked + topic + own).flatten(1), "bias": bias}


def ranked(logits, bias):
    """Scores and ranks [tokens, groups * each], and values of groups [tokens, groups]."""
    score = torch.sigmoid(logits)
    rank = score + bias.flatten()
    return score, rank, rank.unflatten(-1, bias.shape).topk(2, dim=-1).values.sum(dim=-1)


def among(rank, group, groups):
    """Ranks of experts in the groups [tokens, kept]; minus infinity for the others."""
    stays = torch.zeros(rank.shape[0], groups, dtype=torch.bool, device=rank.device)
    stays.scatter_(1, group.long(), value=True)
    known = stays.repeat_interleave(rank.shape[1] // groups, dim=1)
    return rank.masked_fill(~known, -torch.inf)


def weighted(score, expert, scale):
    """Weights of the experts [tokens, k]."""
    chosen = score.gather(1, expert.long())
    return scale * chosen / (1e-20 + chosen.sum(dim=-1, keepdim=True))


def reference(logits, bias, scale, groups, kept, k, **_):
    """Return group [tokens, kept], and expert and weight [tokens, k]."""
    score, rank, value = ranked(logits, bias)
    group = torch.sort(value, dim=-1, descending=True, stable=True).indices[:, :kept]
    known = among(rank, group, groups)
    expert = torch.sort(known, dim=-1, descending=True, stable=True).indices[:, :k]
    return {
        "group": group.to(torch.int32),
        "expert": expert.to(torch.int32),
        "weight": weighted(score, expert, scale),
    }


def misplaced(name, value, chosen):
    """What is wrong with ``chosen`` as the largest of each row of ``value``, in order, or None."""
    outside = (chosen < 0) | (chosen >= value.shape[1])
    if outside.any():
        token, place = outside.nonzero()[0].tolist()
        return f"{name}[{token}, {place}]: {chosen[token, place].item()} is out of range"
    ordered = chosen.sort(dim=-1).values
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(dim=-1)
    if twice.any():
        token = int(twice.nonzero()[0])
        return f"{name}[{token}]: {chosen[token].tolist()} has a number twice"
    found = value.gather(1, chosen.long())
    best = value.topk(chosen.shape[1], dim=-1).values
    wrong = ~((best - found).abs() <= NEAR * best.abs().clamp_min(1.0))
    if wrong.any():
        token, place = wrong.nonzero()[0].tolist()
        wanted, got = best[token, place].item(), found[token, place].item()
        return f"{name}[{token}, {place}]: expected one of {wanted:.7g}, got one of {got:.7g}"
    return None


def check(inputs, outputs, expected):
    """Accept other groups and experts that are as good, with their own weights, or say why not."""
    group, expert, weight = (outputs[name] for name in ("group", "expert", "weight"))
    logits, bias = (inputs[name].to(group.device).double() for name in ("logits", "bias"))
    score, rank, value = ranked(logits, bias)
    wrong = misplaced("group", value, group)
    wrong = wrong or misplaced("expert", among(rank, group, bias.shape[0]), expert)
    if wrong:
        return wrong
    right = weighted(score, expert, inputs["scale"])
    off = ~((weight.double() - right).abs() <= NEAR * right + 1e-7)
    if off.any():
        token, place = off.nonzero()[0].tolist()
        wanted, got = right[token, place].item(), weight[token, place].item()
        return f"weight[{token}, {place}]: expected {wanted:.7g}, got {got:.7g}"
    return None
