"""Oracle of the moe_finalize task: every choice gathered, with dropped ones weighted by zero."""

import torch


def inputs(config, generator):
    """Draw outputs of experts that differ in size, biases, weights that sum to one, and slots.

    Choices are dropped at random, the less the more rows there are. Rows lie by expert.
    """
    tokens, rows, k = config["tokens"], config["rows"], config["k"]
    experts, cols, dtype = config["experts"], config["cols"], config["dtype"]
    liked = torch.randn(experts, generator=generator)
    scores = liked + torch.randn(tokens, experts, generator=generator)
    expert = scores.topk(k, dim=-1).indices
    kept = torch.rand(tokens * k, generator=generator).topk(rows).indices
    order = torch.sort(expert.flatten()[kept], stable=True).indices
    slot = torch.full((tokens * k,), -1, dtype=torch.int32)
    slot[kept[order]] = torch.arange(rows, dtype=torch.int32)
    size = (0.3 + 2.0 * torch.rand(experts, generator=generator))[expert.flatten()[kept[order]]]
    x = size[:, None] * torch.randn(rows, cols, generator=generator)
    return {
        "x": x.to(dtype),
        "bias": torch.randn(experts, cols, generator=generator).to(dtype),
        "residual": (2.0 * torch.randn(tokens, cols, generator=generator)).to(dtype),
        "expert": expert.to(torch.int32),
        "slot": slot.reshape(tokens, k),
        "weight": torch.softmax(torch.randn(tokens, k, generator=generator), dim=-1),
    }


def reference(x, bias, residual, expert, slot, weight, **_):
    """Return y [tokens, cols]."""
    y = residual.clone()
    for place, own, share in zip(slot.T.long(), expert.T.long(), weight.T, strict=True):
        known = torch.where(place >= 0, share, 0.0)
        y += known[:, None] * (x[place.clamp_min(0)] + bias[own])
    return {"y": y}
