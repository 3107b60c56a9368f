"""Oracle of the moe_grouped_gemm task: one product for each expert that has rows."""

import torch


def inputs(config, generator):
    """Draw tokens, weights of spread 1 / sqrt(k) that differ in size by expert, and a division.

    Experts are liked more and less, so that some have many rows and some none.
    """
    rows, experts, n, k = (config[name] for name in ("rows", "experts", "n", "k"))
    liked = torch.softmax(1.2 * torch.randn(experts, generator=generator), dim=0)
    chosen = torch.multinomial(liked, rows, replacement=True, generator=generator)
    count = torch.bincount(chosen, minlength=experts)
    begin = torch.cat((torch.zeros(1, dtype=torch.int64), count.cumsum(0)))
    size = (0.5 + torch.rand(experts, 1, 1, generator=generator)) / k**0.5
    dtype = config["dtype"]
    return {
        "x": torch.randn(rows, k, generator=generator).to(dtype),
        "weight": (size * torch.randn(experts, n, k, generator=generator)).to(dtype),
        "begin": begin.to(torch.int32),
    }


def reference(x, weight, begin, n, **_):
    """Return y [rows, n]."""
    y = x.new_zeros(x.shape[0], n)
    ends = begin.tolist()
    for expert in range(weight.shape[0]):
        rows = slice(ends[expert], ends[expert + 1])
        y[rows] = x[rows] @ weight[expert].T
    return {"y": y}
