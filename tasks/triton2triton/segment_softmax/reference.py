"""Oracle of the segment_softmax task: largest elements and sums by scattering over nodes."""

import torch


def inputs(config, generator):
    """Draw scores with an offset a node, and nodes whose numbers of edges have a heavy tail.

    Some nodes have no edge, and a few have a large part of them.
    """
    edges, nodes, heads = config["edges"], config["nodes"], config["heads"]
    liked = torch.rand(nodes, generator=generator) ** -0.7
    liked *= torch.rand(nodes, generator=generator) < 0.9
    liked[0] = 1.0
    ends = (liked.double().cumsum(0) / liked.double().sum() * edges).round().long()
    ends[-1] = edges
    begin = torch.cat((torch.zeros(1, dtype=torch.int64), ends))
    owner = torch.repeat_interleave(torch.arange(nodes), begin.diff())
    offset = 3.0 * torch.randn(nodes, heads, generator=generator)
    x = offset[owner] + 2.0 * torch.randn(edges, heads, generator=generator)
    return {"x": x.to(config["dtype"]), "begin": begin.to(torch.int32)}


def reference(x, begin, nodes, **_):
    """Return y [edges, heads] and lse [nodes, heads]."""
    owner = torch.repeat_interleave(torch.arange(nodes, device=x.device), begin.long().diff())
    at = owner[:, None].expand_as(x)
    empty = (begin.diff() == 0)[:, None]
    peak = x.new_full((nodes, x.shape[1]), -torch.inf).scatter_reduce(0, at, x, "amax")
    peak = peak.masked_fill(empty, 0.0)
    share = torch.exp(x - peak[owner])
    total = torch.zeros_like(peak).scatter_add(0, at, share).masked_fill(empty, 1.0)
    return {"y": share / total[owner], "lse": peak + total.log()}
