"""Oracle of the moe_combine task: gathered rows, weighted and summed."""

import torch


def inputs(config, generator):
    """Draw outputs of experts that differ in size, weights that sum to one, and slots by expert.

    Slots are a permutation: rows of an expert lie together, in the order of their tokens.
    """
    tokens, k, cols, dtype = (config[name] for name in ("tokens", "k", "cols", "dtype"))
    experts = max(8, 4 * k)
    scores = torch.randn(experts, generator=generator) + torch.randn(
        tokens, experts, generator=generator
    )
    expert = scores.topk(k, dim=-1).indices.flatten()
    order = torch.sort(expert, stable=True).indices
    slot = torch.empty(tokens * k, dtype=torch.int32)
    slot[order] = torch.arange(tokens * k, dtype=torch.int32)
    size = (0.3 + 2.0 * torch.rand(experts, generator=generator))[expert[order]]
    x = size[:, None] * torch.randn(tokens * k, cols, generator=generator)
    weight = torch.softmax(torch.randn(tokens, k, generator=generator), dim=-1)
    shared = torch.randn(tokens, cols, generator=generator)
    return {
        "x": x.to(dtype),
        "slot": slot.reshape(tokens, k),
        "weight": weight,
        "shared": shared.to(dtype),
    }


def reference(x, slot, weight, shared, **_):
    """Return y [tokens, cols]."""
    return {"y": shared + torch.einsum("tk,tkc->tc", weight, x[slot.long()])}
