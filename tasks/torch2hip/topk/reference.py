"""Oracle, checker and PyTorch baseline of the topk task."""

import torch


def inputs(config, generator):
    """Draw logits: x [rows, cols], normal, with a scale per row.

    In float16 and bfloat16 the rows hold many equal elements; in about a third of the
    rows, whatever the dtype, elements are rounded so that ties cross the k-th place.
    """
    rows, cols = config["rows"], config["cols"]
    x = torch.randn(rows, cols, generator=generator)
    x = x * (0.5 + 3.5 * torch.rand(rows, 1, generator=generator))
    coarse = torch.rand(rows, 1, generator=generator) < 1 / 3
    return {"x": torch.where(coarse, x.round(), x).to(config["dtype"])}


def reference(x, k, **_):
    """Return values [rows, k], descending, and indices [rows, k]: a stable full sort."""
    values, indices = torch.sort(x, dim=-1, descending=True, stable=True)
    return {"values": values[:, :k], "indices": indices[:, :k]}


def baseline(x, k, **_):
    """PyTorch's own selection."""
    values, indices = torch.topk(x, k, dim=-1, largest=True, sorted=True)
    return {"values": values, "indices": indices}


def check(inputs, outputs, expected):
    """Accept any choice among equal elements; say what is wrong otherwise, or None."""
    x, values, indices = inputs["x"], outputs["values"], outputs["indices"]
    cols = x.shape[1]
    for name, shape, dtype in (
        ("values", expected["values"].shape, x.dtype),
        ("indices", expected["indices"].shape, torch.int64),
    ):
        if outputs[name].shape != shape or outputs[name].dtype != dtype:
            got = f"{outputs[name].dtype}{list(outputs[name].shape)}"
            return f"{name}: expected {dtype}{list(shape)}, got {got}"
    wrong = ~same(values, expected["values"].to(values.device))
    if wrong.any():
        row, place = first(wrong)
        want = expected["values"][row, place].item()
        return f"values[{row}, {place}]: expected {want}, got {values[row, place].item()}"
    outside = (indices < 0) | (indices >= cols)
    if outside.any():
        row, place = first(outside)
        return f"indices[{row}, {place}]: {indices[row, place].item()} is not a column of {cols}"
    strange = ~same(x.gather(1, indices), values)
    if strange.any():
        row, place = first(strange)
        column = indices[row, place].item()
        held, said = x[row, column].item(), values[row, place].item()
        return f"indices[{row}, {place}]: column {column} holds {held}, not {said}"
    ordered = indices.sort(dim=1).values
    repeated = ordered[:, 1:] == ordered[:, :-1]
    if repeated.any():
        row, place = first(repeated)
        return f"indices of row {row}: column {ordered[row, place].item()} occurs twice"
    return None


def same(a, b):
    """Elementwise equality, NaN being equal to NaN."""
    return (a == b) | (a.isnan() & b.isnan())


def first(mask):
    """Row and place of the first true element."""
    row, place = mask.nonzero()[0].tolist()
    return row, place
