"""Oracle of the gat_aggregate task: a softmax over segments of edges, and sums by node."""

import torch
from torch.nn.functional import leaky_relu


def inputs(config, generator):
    """Draw a graph whose degrees follow a power law, scores, and features with an offset.

    A few nodes have a large part of all edges, and many have one or none.
    """
    nodes, edges, heads = config["nodes"], config["edges"], config["heads"]
    known = (1.0 / (1e-3 + torch.rand(nodes, generator=generator))).double().cumsum(0)
    drawn = torch.rand(2, edges, generator=generator, dtype=torch.float64) * known[-1]
    row, source = torch.searchsorted(known, drawn).clamp_max(nodes - 1)
    key = (row * nodes + source).sort().values
    degree = torch.bincount(key // nodes, minlength=nodes)
    begin = torch.cat((torch.zeros(1, dtype=torch.int64), degree.cumsum(0)))
    x = 0.5 + torch.randn(nodes, heads, config["dim"], generator=generator)
    return {
        "begin": begin.to(torch.int32),
        "source": (key % nodes).to(torch.int32),
        "to_score": torch.randn(nodes, heads, generator=generator),
        "from_score": 2.0 * torch.randn(nodes, heads, generator=generator),
        "x": x.to(config["dtype"]),
    }


def reference(begin, source, to_score, from_score, x, nodes, heads, **_):
    """Return y [nodes, heads, dim]."""
    begin, source = begin.long(), source.long()
    row = torch.repeat_interleave(torch.arange(nodes, device=x.device), begin.diff())
    scores = leaky_relu(to_score[row] + from_score[source], 0.2)
    peak = torch.full((nodes, heads), -torch.inf, dtype=x.dtype, device=x.device)
    peak = peak.index_reduce(0, row, scores.to(x.dtype), "amax")
    weight = torch.exp(scores - peak[row])
    total = torch.zeros_like(peak).index_add(0, row, weight.to(x.dtype))
    y = torch.zeros_like(x)
    for part in torch.arange(len(row), device=x.device).split(1 << 20):
        share = (weight[part] / total[row[part]]).to(x.dtype)
        y.index_add_(0, row[part], share[..., None] * x[source[part]])
    return {"y": y}
