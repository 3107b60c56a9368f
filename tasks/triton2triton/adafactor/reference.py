"""Oracle of the adafactor task: the factored moment as a whole matrix."""

import torch


def inputs(config, generator):
    """Draw a state in the middle of training: gradients with a size a row and a size a column.

    The moments are about those of such gradients. A few steps have gradients that are larger than
    before, so that the update is held back in some draws.
    """
    rows, cols = config["rows"], config["cols"]
    of_row = 10.0 ** (torch.rand(rows, 1, generator=generator) - 0.5)
    of_col = 10.0 ** (torch.rand(1, cols, generator=generator) - 0.5)
    louder = 1.0 + 2.0 * torch.rand(1, generator=generator)
    grad = louder * of_row * of_col * torch.randn(rows, cols, generator=generator)
    noise = [0.7 + 0.6 * torch.rand(n, generator=generator) for n in (rows, cols)]
    return {
        "grad": grad.to(config["dtype"]),
        "master": 0.3 * torch.randn(rows, cols, generator=generator),
        "row": of_row[:, 0].square() * of_col.square().mean() * noise[0],
        "col": of_col[0].square() * of_row.square().mean() * noise[1],
    }


def reference(grad, master, row, col, lr, beta, limit, decay, **_):
    """Return param_new, master_new, row_new and col_new."""
    square = grad.square() + 1e-30
    row_new = beta * row.clamp_min(0) + (1 - beta) * square.mean(dim=1)
    col_new = beta * col.clamp_min(0) + (1 - beta) * square.mean(dim=0)
    update = grad / torch.outer(row_new / row_new.mean(), col_new).sqrt()
    update = update / (update.square().mean().sqrt() / limit).clamp_min(1)
    master_new = master - lr * (update + decay * master)
    return {
        "param_new": master_new,
        "master_new": master_new,
        "row_new": row_new,
        "col_new": col_new,
    }
