"""Oracle of the moe_weight_gradient task: one product for each expert that has rows."""

import torch


def inputs(config, generator):
    """Draw activations, gradients with a size a row, and a division among experts.

    Experts are liked more and less, so that some have many rows and some none.
    """
    rows, experts, n, k = (config[name] for name in ("rows", "experts", "n", "k"))
    liked = torch.softmax(1.2 * torch.randn(experts, generator=generator), dim=0)
    chosen = torch.multinomial(liked, rows, replacement=True, generator=generator)
    count = torch.bincount(chosen, minlength=experts)
    begin = torch.cat((torch.zeros(1, dtype=torch.int64), count.cumsum(0)))
    size = 0.2 + torch.rand(rows, 1, generator=generator)
    dtype = config["dtype"]
    return {
        "x": (0.2 + torch.randn(rows, k, generator=generator)).to(dtype),
        "dy": (size * torch.randn(rows, n, generator=generator)).to(dtype),
        "begin": begin.to(torch.int32),
    }


def reference(x, dy, begin, experts, n, k, **_):
    """Return dweight [experts, n, k]."""
    dweight = x.new_zeros(experts, n, k)
    ends = begin.tolist()
    for expert in range(experts):
        rows = slice(ends[expert], ends[expert + 1])
        dweight[expert] = dy[rows].T @ x[rows]
    return {"dweight": dweight}
