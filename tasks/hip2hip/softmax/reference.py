"""Oracle of the softmax task: exp(x - logsumexp(x)) along the rows."""

import torch


def inputs(config, generator):
    """Draw logits: x [rows, cols], normal with a row-dependent temperature and offset.

    Rows differ in peakedness, as logits do, and their offsets make exp overflow
    in a kernel that does not subtract the maximum.
    """
    rows, cols = config["rows"], config["cols"]
    logits = torch.randn(rows, cols, generator=generator)
    temperature = 0.5 + 3.5 * torch.rand(rows, 1, generator=generator)
    offset = 200.0 * (torch.rand(rows, 1, generator=generator) - 0.5)
    return {"x": (logits * temperature + offset).to(config["dtype"])}


def reference(x, **_):
    """Return y [rows, cols]: each row's exponentials over their sum."""
    return {"y": torch.exp(x - torch.logsumexp(x, dim=-1, keepdim=True))}
