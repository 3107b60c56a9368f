"""Oracle and checker of the vector_quantise task: differences squared, a part of points a time."""

import torch

BOUND = 1e-5
PART = 1 << 24
"""Elements of differences that are in memory at once."""


def inputs(config, generator):
    """Draw entries that crowd around a few centres, and points near entries or between them.

    Centres are far from zero, so that distances are small beside the lengths of points.
    """
    points, entries, dim = config["points"], config["entries"], config["dim"]
    centres = 1.0 + 1.5 * torch.randn(8, dim, generator=generator)
    of_entry = torch.randint(0, 8, (entries,), generator=generator)
    codebook = centres[of_entry] + 0.7 * torch.randn(entries, dim, generator=generator)
    own = torch.randint(0, entries, (points,), generator=generator)
    away = 0.2 + torch.rand(points, 1, generator=generator)
    x = codebook[own] + away * torch.randn(points, dim, generator=generator)
    return {"x": x.to(config["dtype"]), "codebook": codebook.to(config["dtype"])}


def reference(x, codebook, **_):
    """Return nearest and distance [points]."""
    distances, entries = [], []
    for part in x.split(max(1, PART // codebook.numel())):
        squares = (part[:, None] - codebook).square().sum(dim=-1)
        found = squares.min(dim=-1)
        distances.append(found.values)
        entries.append(found.indices)
    return {"nearest": torch.cat(entries).to(torch.int32), "distance": torch.cat(distances)}


def check(inputs, outputs, expected):
    """Accept any entry that is as near as the nearest; say what is wrong otherwise, or None."""
    nearest, distance = outputs["nearest"], outputs["distance"]
    x, codebook = (inputs[name].to(nearest.device).double() for name in ("x", "codebook"))
    best = expected["distance"].to(nearest.device).double()
    outside = (nearest < 0) | (nearest >= codebook.shape[0])
    if outside.any():
        point = int(outside.nonzero()[0])
        return f"nearest[{point}]: {nearest[point].item()} is not an entry of {codebook.shape[0]}"
    chosen = codebook[nearest.long()]
    allowed = BOUND * (x.square().sum(-1) + chosen.square().sum(-1))
    taken = (x - chosen).square().sum(-1)
    for name, off in (("nearest", taken - best), ("distance", (distance.double() - best).abs())):
        wrong = ~(off <= allowed)
        if wrong.any():
            point = int(wrong.nonzero()[0])
            said = (taken if name == "nearest" else distance)[point].item()
            return f"{name}[{point}]: expected a distance of {best[point].item()}, got {said}"
    return None
