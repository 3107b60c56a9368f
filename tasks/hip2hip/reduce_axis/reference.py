"""Oracle of the reduce_axis task: the mean, and the larger of the largest and minus the least."""

import torch


def inputs(config, generator):
    """Draw activations with a mean and a size for each result, and rare outliers."""
    outer, size, inner = config["outer"], config["size"], config["inner"]
    centre = torch.randn(outer, 1, inner, generator=generator)
    width = 0.3 + torch.rand(outer, 1, inner, generator=generator)
    x = centre + width * torch.randn(outer, size, inner, generator=generator)
    outlier = torch.rand(outer, size, inner, generator=generator) < 1e-3
    return {"x": torch.where(outlier, -6.0 * x, x).to(config["dtype"])}


def reference(x, **_):
    """Return mean and most [outer, inner]."""
    return {"mean": x.mean(dim=1), "most": torch.maximum(x.amax(dim=1), -x.amin(dim=1))}
