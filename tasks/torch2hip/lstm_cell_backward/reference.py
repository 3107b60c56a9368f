"""Oracle and PyTorch baseline of the lstm_cell_backward task."""

import torch


def inputs(config, generator):
    """Draw sums for gates, those that forget with an offset, cells, and gradients of both results.

    Some gates are shut or open all the way; a row's gradients have a size of their own.
    """
    rows, hidden, dtype = config["rows"], config["hidden"], config["dtype"]
    spread = 0.5 + 2.0 * torch.rand(4, hidden, generator=generator)
    offset = torch.tensor([0.0, 1.0, 0.0, 0.0])[:, None]
    gates = offset + spread * torch.randn(rows, 4, hidden, generator=generator)
    c_old = 1.2 * torch.randn(rows, hidden, generator=generator)
    size = 0.2 + torch.rand(rows, 1, generator=generator)
    common = 0.3 * torch.randn(hidden, generator=generator)
    dh = size * (common + torch.randn(rows, hidden, generator=generator))
    dc_next = size * torch.randn(rows, hidden, generator=generator)
    return {
        "gates": gates.flatten(1).to(dtype),
        "c_old": c_old,
        "dh": dh.to(dtype),
        "dc_next": dc_next,
    }


def reference(gates, c_old, dh, dc_next, **_):
    """Return dgates, dc_old and dbias. Nothing is taken from 1, which would lose small slopes."""
    i, f, g, o = gates.chunk(4, dim=-1)
    take, keep, show, new = i.sigmoid(), f.sigmoid(), o.sigmoid(), g.tanh()
    cell = keep * c_old + take * new
    dc = dc_next + dh * show * _slope_of_tanh(cell)
    parts = (
        dc * new * take * (-i).sigmoid(),
        dc * c_old * keep * (-f).sigmoid(),
        dc * take * _slope_of_tanh(g),
        dh * cell.tanh() * show * (-o).sigmoid(),
    )
    dgates = torch.cat(parts, dim=-1)
    return {"dgates": dgates, "dc_old": dc * keep, "dbias": dgates.sum(dim=0)}


def _slope_of_tanh(x):
    return 4 * (2 * x).sigmoid() * (-2 * x).sigmoid()


def baseline(gates, c_old, dh, dc_next, **_):
    """Elementwise kernels in float32, with PyTorch's gradients of sigmoid and tanh, and a sum."""
    of_sigmoid, of_tanh = torch.ops.aten.sigmoid_backward, torch.ops.aten.tanh_backward
    i, f, g, o = gates.float().chunk(4, dim=-1)
    take, keep, show, new = i.sigmoid(), f.sigmoid(), o.sigmoid(), g.tanh()
    seen = torch.addcmul(keep * c_old, take, new).tanh_()
    wide = dh.float()
    dc = dc_next + of_tanh(wide * show, seen)
    parts = (
        of_sigmoid(dc * new, take),
        of_sigmoid(dc * c_old, keep),
        of_tanh(dc * take, new),
        of_sigmoid(wide * seen, show),
    )
    dgates = torch.cat(parts, dim=-1)
    return {"dgates": dgates.to(gates.dtype), "dc_old": dc * keep, "dbias": dgates.sum(dim=0)}
