"""Oracle of the graph_aggregate_backward task: weighted rows added where their sources are."""

import torch

PART = 1 << 24
"""Elements of products that are in memory at once."""


def inputs(config, generator):
    """Draw a graph whose nodes differ in how many edges they have, weights, features and gradients.

    A few nodes are the source of many edges, and some have none. Weights are those of degrees.
    """
    nodes, edges, dim = config["nodes"], config["edges"], config["dim"]
    drawn = torch.rand(2, edges, generator=generator, dtype=torch.float64)
    name = torch.randperm(nodes, generator=generator)
    source = name[(nodes * drawn[0] ** 2).long().clamp_max(nodes - 1)]
    target = (nodes * drawn[1]).long().clamp_max(nodes - 1).sort().values
    degree = 1.0 + target.bincount(minlength=nodes).float()
    jitter = 0.7 + 0.6 * torch.rand(edges, generator=generator)
    weight = 2.0 * jitter * (degree[source] * degree[target]).rsqrt()
    size = 0.3 + torch.rand(nodes, 1, generator=generator)
    return {
        "x": torch.randn(nodes, dim, generator=generator).to(config["dtype"]),
        "weight": weight,
        "source": source.to(torch.int32),
        "target": target.to(torch.int32),
        "dy": (size * torch.randn(nodes, dim, generator=generator)).to(config["dtype"]),
    }


def reference(x, weight, source, target, dy, **_):
    """Return dx [nodes, dim] and dweight [edges]."""
    dx, dweight = torch.zeros_like(x), []
    step = max(1, PART // x.shape[1])
    for first in range(0, len(weight), step):
        own, other = (ends[first : first + step].long() for ends in (source, target))
        gradient = dy[other]
        dx.index_add_(0, own, weight[first : first + step, None] * gradient)
        dweight.append((x[own] * gradient).sum(dim=1))
    return {"dx": dx, "dweight": torch.cat(dweight)}
