"""Oracle of the lora_bgmv task: each adapter's tokens, by two products."""

import torch


def inputs(config, generator):
    """Draw activations, adapters that differ in size, a layer's output, and who has which.

    A few adapters are liked most. About 1 token in 8 has none.
    """
    tokens, k, n, rank = (config[name] for name in ("tokens", "k", "n", "rank"))
    adapters, dtype = config["adapters"], config["dtype"]
    size = 0.5 + torch.rand(adapters, 1, 1, generator=generator)
    down = size * torch.randn(adapters, rank, k, generator=generator) / k**0.5
    up = 0.5 * torch.randn(adapters, n, rank, generator=generator) / rank**0.5
    liked = 1.0 / (1.0 + torch.arange(adapters, dtype=torch.float32))
    which = torch.multinomial(liked, tokens, replacement=True, generator=generator)
    which = torch.randperm(adapters, generator=generator)[which]
    none = torch.rand(tokens, generator=generator) < 1 / 8
    return {
        "x": torch.randn(tokens, k, generator=generator).to(dtype),
        "down": down.to(dtype),
        "up": up.to(dtype),
        "adapter": which.masked_fill(none, -1).to(torch.int32),
        "base": torch.randn(tokens, n, generator=generator).to(dtype),
    }


def reference(x, down, up, adapter, base, scale, adapters, **_):
    """Return y [tokens, n]."""
    y = base.clone()
    for own in range(adapters):
        rows = adapter == own
        y[rows] += scale * (x[rows] @ down[own].T) @ up[own].T
    return {"y": y}
