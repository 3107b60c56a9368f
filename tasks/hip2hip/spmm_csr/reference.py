"""Oracle of the spmm_csr task: products of all edges, added up by row."""

import torch


def inputs(config, generator):
    """Draw a graph whose degrees follow a power law, normalised weights, and features.

    A few nodes have a large part of all edges, and many have one or none.
    """
    nodes, edges = config["nodes"], config["edges"]
    known = (1.0 / (1e-3 + torch.rand(nodes, generator=generator))).double().cumsum(0)
    drawn = torch.rand(2, edges, generator=generator, dtype=torch.float64) * known[-1]
    row, column = torch.searchsorted(known, drawn).clamp_max(nodes - 1)
    key = (row * nodes + column).sort().values
    row, column = key // nodes, key % nodes
    degree = torch.bincount(row, minlength=nodes)
    size = (1.0 + degree).rsqrt()
    begin = torch.cat((torch.zeros(1, dtype=torch.int64), degree.cumsum(0)))
    x = 0.3 + torch.randn(nodes, config["features"], generator=generator)
    return {
        "begin": begin.to(torch.int32),
        "column": column.to(torch.int32),
        "weight": (0.5 + torch.rand(edges, generator=generator)) * size[row] * size[column],
        "x": x.to(config["dtype"]),
    }


def reference(begin, column, weight, x, nodes, **_):
    """Return y [nodes, features]."""
    begin = begin.long()
    row = torch.repeat_interleave(torch.arange(nodes, device=x.device), begin.diff())
    y = torch.zeros_like(x)
    for part in torch.arange(len(row), device=x.device).split(1 << 22):
        y.index_add_(0, row[part], weight[part, None] * x[column[part].long()])
    return {"y": y}
