"""Oracle of the sort_scores task: PyTorch's stable sort."""

import torch


def inputs(config, generator):
    """Draw scores of a detector: most are low, some stand out, and many are equal.

    A tenth of each row repeats the score of another column. Rows differ in their level.
    """
    rows, cols = config["rows"], config["cols"]
    level = torch.randn(rows, 1, generator=generator)
    scores = level + 1.5 * torch.randn(rows, cols, generator=generator)
    scores += 4.0 * (torch.rand(rows, cols, generator=generator) < 0.05)
    other = torch.randint(0, cols, (rows, cols), generator=generator)
    repeats = torch.rand(rows, cols, generator=generator) < 0.1
    return {"scores": torch.where(repeats, scores.gather(-1, other), scores).to(config["dtype"])}


def reference(scores, **_):
    """Return ranked and order [rows, cols]."""
    found = scores.sort(dim=-1, descending=True, stable=True)
    return {"ranked": found.values, "order": found.indices.to(torch.int32)}
