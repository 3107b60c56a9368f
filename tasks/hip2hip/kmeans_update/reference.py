"""Oracle of the kmeans_update task: sums by index, divided by counts."""

import torch


def inputs(config, generator):
    """Draw points around their centres, which have points in very different numbers.

    A centre's share falls with its rank, and ranks lie anywhere. One centre in ten has no point.
    """
    points, dim, centres = config["points"], config["dim"], config["centres"]
    old = 1.5 * torch.randn(centres, dim, generator=generator)
    rank = ((0.9 * centres) ** torch.rand(points, generator=generator)).long() - 1
    order = torch.randperm(centres, generator=generator)
    nearest = order[rank.clamp(0, centres - 1)]
    x = old[nearest] + 0.3 + 0.7 * torch.randn(points, dim, generator=generator)
    return {"x": x.to(config["dtype"]), "nearest": nearest.to(torch.int32), "old": old}


def reference(x, nearest, old, centres, **_):
    """Return centre_new [centres, dim] and count [centres]."""
    count = torch.bincount(nearest, minlength=centres)
    sums = torch.zeros_like(old).index_add_(0, nearest.long(), x.to(old.dtype))
    mean = sums / count.clamp_min(1)[:, None]
    return {
        "centre_new": torch.where(count[:, None] > 0, mean, old),
        "count": count.to(torch.int32),
    }
