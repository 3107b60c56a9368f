"""Oracle of the mutual_information task: joint counts by bincount, and a sum of entropies."""

import torch


def inputs(config, generator):
    """Draw images of tissues, the same tissues in another contrast, partly displaced, and weights.

    A third of all voxels is the dark background, and some tissue is as bright as there is.
    """
    pairs, voxels = config["pairs"], config["voxels"]
    level = torch.rand(2, pairs, 6, generator=generator) * 240.0
    level[:, :, 0], level[:, :, 5] = 6.0, 252.0
    tissue = torch.randint(-2, 6, (pairs, voxels), generator=generator).clamp_min(0)
    displaced = torch.rand(pairs, voxels, generator=generator) < 0.25
    other = torch.where(displaced, tissue.roll(1, dims=1), tissue)

    weight = 0.5 + torch.rand(pairs, generator=generator)

    def seen(levels, own):
        noise = 12.0 * torch.randn(pairs, voxels, generator=generator)
        return (levels.gather(1, own) + noise).clamp(0, 255).to(torch.uint8)

    return {"fixed": seen(level[0], tissue), "moving": seen(level[1], other), "weight": weight}


def reference(fixed, moving, weight, voxels, bins, **_):
    """Return joint [pairs, bins, bins] and information [pairs]."""
    both = fixed.long() * bins // 256 * bins + moving.long() * bins // 256
    joint = torch.stack([pair.bincount(minlength=bins * bins) for pair in both])
    joint = joint.unflatten(1, (bins, bins))
    p = joint.to(weight.dtype) / voxels

    def entropy(share):
        return -torch.special.xlogy(share, share).flatten(1).sum(dim=1)

    information = entropy(p.sum(dim=1)) + entropy(p.sum(dim=2)) - entropy(p)
    return {"joint": joint.to(torch.int32), "information": weight * information}
