"""Oracle of the moe_combine_backward task: gathered rows, and a scatter of their gradients."""

import torch


def inputs(config, generator):
    """Draw outputs of experts that differ in size, weights that sum to one, and slots by expert.

    Gradients have a size a token, and go along with the outputs a little.
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
    steep = 0.2 + torch.rand(tokens, 1, generator=generator)
    dy = steep * (torch.randn(tokens, cols, generator=generator) + 0.1 * x[slot[::k].long()])
    return {
        "x": x.to(dtype),
        "slot": slot.reshape(tokens, k),
        "weight": weight,
        "dy": dy.to(dtype),
    }


def reference(x, slot, weight, dy, **_):
    """Return dx [tokens * k, cols] and dweight [tokens, k]."""
    place = slot.long()
    dx = torch.empty_like(x)
    dx[place.flatten()] = (weight[..., None] * dy[:, None]).flatten(0, 1)
    return {"dx": dx, "dweight": torch.einsum("tkc,tc->tk", x[place], dy)}
