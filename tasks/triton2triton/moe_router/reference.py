"""Oracle of the moe_router task: a stable sort, softmax over what was chosen, and a histogram."""

import torch


def inputs(config, generator):
    """Draw logits [tokens, experts] with experts that are liked more than others.

    In a third of the rows logits are rounded to quarters, so that several are equal.
    """
    tokens, experts = config["tokens"], config["experts"]
    liked = torch.randn(experts, generator=generator)
    logits = liked + 1.5 * torch.randn(tokens, experts, generator=generator)
    coarse = torch.rand(tokens, 1, generator=generator) < 1 / 3
    logits = torch.where(coarse, (4.0 * logits).round() / 4.0, logits)
    return {"logits": logits.to(config["dtype"])}


def reference(logits, k, experts, **_):
    """Return expert and weight [tokens, k], and count [experts]."""
    ordered, column = torch.sort(logits, dim=-1, descending=True, stable=True)
    expert = column[:, :k]
    return {
        "expert": expert.to(torch.int32),
        "weight": torch.softmax(ordered[:, :k], dim=-1),
        "count": torch.bincount(expert.flatten(), minlength=experts).to(torch.int32),
    }
