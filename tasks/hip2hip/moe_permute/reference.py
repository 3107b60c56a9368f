"""Oracle of the moe_permute task: a stable sort of all choices by expert."""

import torch


def inputs(config, generator):
    """Draw tokens, and their experts by scores: some experts are liked and some have no token."""
    tokens, k, experts = config["tokens"], config["k"], config["experts"]
    liked = 1.5 * torch.randn(experts, generator=generator)
    scores = liked + torch.randn(tokens, experts, generator=generator)
    x = torch.randn(tokens, config["cols"], generator=generator)
    return {
        "x": x.to(config["dtype"]),
        "expert": scores.topk(k, dim=-1).indices.to(torch.int32),
    }


def reference(x, expert, k, experts, **_):
    """Return grouped [tokens * k, cols], slot [tokens, k] and count [experts]."""
    chosen = expert.long().flatten()
    order = torch.sort(chosen, stable=True).indices
    slot = torch.empty_like(order)
    slot[order] = torch.arange(len(order), device=x.device)
    return {
        "grouped": x[order // k],
        "slot": slot.reshape(expert.shape).to(torch.int32),
        "count": torch.bincount(chosen, minlength=experts).to(torch.int32),
    }
