"""Oracle of the dot_interaction_backward task: each pair's gradient put in both of its places."""

import torch


def inputs(config, generator):
    """Draw embeddings with a size a feature, and gradients that differ in size by example."""
    batch, features, dim = config["batch"], config["features"], config["dim"]
    dtype = config["dtype"]
    size = 0.2 + torch.rand(features, 1, generator=generator)
    z = size * (0.2 + torch.randn(batch, features, dim, generator=generator))
    loud = 0.1 + torch.rand(batch, 1, generator=generator)
    dp = loud * torch.randn(batch, features * (features - 1) // 2, generator=generator)
    dfirst = 3.0 * loud * torch.randn(batch, dim, generator=generator)
    return {"z": z.to(dtype), "dp": dp.to(dtype), "dfirst": dfirst.to(dtype)}


def reference(z, dp, dfirst, features, **_):
    """Return dz [batch, features, dim]."""
    high, low = torch.tril_indices(features, features, offset=-1, device=z.device)
    weight = z.new_zeros(z.shape[0], features, features)
    weight[:, high, low] = dp
    dz = (weight + weight.transpose(1, 2)) @ z
    dz[:, 0] += dfirst
    return {"dz": dz}
