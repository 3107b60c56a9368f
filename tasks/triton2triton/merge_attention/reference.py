"""Oracle of the merge_attention task: a softmax over the parts."""

import torch


def inputs(config, generator):
    """Draw results of parts that differ in weight, some of them without a key.

    A query's parts differ by a few units of lse, so that most of them count. The first part always
    has keys; where another has none, its result is what was left in memory: large.
    """
    shape = (config["parts"], config["tokens"], config["heads"])
    level = 8.0 * torch.randn(shape[1:], generator=generator)
    lse = level + 1.5 * torch.randn(shape, generator=generator)
    empty = torch.rand(shape[:2], generator=generator) < 0.15
    empty[0] = False
    y = 0.3 + torch.randn(*shape, config["dim"], generator=generator)
    y = torch.where(empty[..., None, None], 30.0 * y, y)
    return {
        "y": y.to(config["dtype"]),
        "lse": lse.masked_fill(empty[..., None], -1e30),
    }


def reference(y, lse, **_):
    """Return merged [tokens, heads, dim] and lse_new [tokens, heads]."""
    share = torch.softmax(lse, dim=0)
    return {"merged": (share[..., None] * y).sum(dim=0), "lse_new": torch.logsumexp(lse, dim=0)}
