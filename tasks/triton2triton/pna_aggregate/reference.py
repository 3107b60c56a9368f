"""Oracle of the pna_aggregate task: aggregates by scattering messages over nodes."""

import torch


def inputs(config, generator):
    """Draw features with a mean and a scale a column, and nodes with few or many neighbours.

    Some nodes have no edge, and some have a large part of them.
    """
    nodes, edges, dim = config["nodes"], config["edges"], config["dim"]
    liked = (0.05 + torch.rand(nodes, generator=generator)) ** -0.7
    liked *= torch.rand(nodes, generator=generator) < 0.9
    liked[0] = 1.0
    ends = (liked.double().cumsum(0) / liked.double().sum() * edges).round().long()
    ends[-1] = edges
    begin = torch.cat((torch.zeros(1, dtype=torch.int64), ends))
    scale = 0.5 + torch.rand(dim, generator=generator)
    mean = torch.randn(dim, generator=generator)
    x = mean + scale * torch.randn(nodes, dim, generator=generator)
    return {
        "x": x.to(config["dtype"]),
        "begin": begin.to(torch.int32),
        "source": torch.randint(0, nodes, (edges,), generator=generator).to(torch.int32),
    }


def reference(x, begin, source, eps, nodes, **_):
    """Return y [nodes, 4, dim]."""
    degree = begin.long().diff()
    owner = torch.repeat_interleave(torch.arange(nodes, device=x.device), degree)
    at, message = owner[:, None].expand(-1, x.shape[1]), x[source.long()]
    some = degree.clamp_min(1)[:, None]
    zeros = torch.zeros_like(x)
    mean = zeros.scatter_add(0, at, message) / some
    most = zeros.scatter_reduce(0, at, message, "amax", include_self=False)
    least = zeros.scatter_reduce(0, at, message, "amin", include_self=False)
    variance = zeros.scatter_add(0, at, (message - mean[owner]).square()) / some
    return {"y": torch.stack((mean, most, least, (variance + eps).sqrt()), dim=1)}
