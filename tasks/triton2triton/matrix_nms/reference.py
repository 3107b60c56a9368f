"""Oracle of the matrix_nms task: all overlaps in a matrix, and its columns' extremes."""

import torch


def inputs(config, generator):
    """Draw ellipses around some things, most of them seen by several objects, and labels.

    Objects of a thing mostly agree on its class. Half of the classes' names are one bit apart from
    those of the others. A few objects have no pixel.
    """
    objects, pixels = config["objects"], config["pixels"]
    width = max(1, int((1.5 * pixels) ** 0.5))
    place = torch.arange(pixels)
    across, down = (place % width).float(), (place // width).float()
    things = 1 + objects // 5
    own = torch.randint(0, things, (objects,), generator=generator)
    middle = torch.rand(things, 2, generator=generator)[own]
    middle += 0.02 * torch.randn(objects, 2, generator=generator)
    size = 0.08 + 0.3 * torch.rand(things, 2, generator=generator)[own]
    size *= 0.8 + 0.4 * torch.rand(objects, 2, generator=generator)
    size *= (torch.rand(objects, 1, generator=generator) < 0.97) + 1e-3
    mask = torch.empty(objects, pixels, dtype=torch.uint8)
    for i in range(objects):
        x = (across / width - middle[i, 0]) / size[i, 0]
        y = (down * width / pixels - middle[i, 1]) / size[i, 1]
        mask[i] = x * x + y * y < 1.0
    kind = torch.randint(0, 80, (things,), generator=generator)[own]
    strange = torch.rand(objects, generator=generator) < 0.2
    label = torch.where(strange, torch.randint(0, 80, (objects,), generator=generator), kind)
    score = (0.1 + 0.9 * torch.rand(objects, generator=generator)).sort(descending=True).values
    name = torch.randint(-(2**31), 2**31, (80,), generator=generator)
    name[40:] = name[:40] ^ (1 << torch.randint(31, (40,), generator=generator))
    label = name[label]
    return {"mask": mask, "label": label.to(torch.int32), "score": score}


def reference(mask, label, score, sigma, **_):
    """Return lowered [objects]."""
    wide = mask.to(torch.float64)
    both = wide @ wide.T
    area = both.diagonal()
    union = area[:, None] + area - both
    overlap = torch.where(union > 0, both / union, 0.0) * (label[:, None] == label)
    overlap = overlap.triu(1)
    comp = overlap.amax(dim=0)
    factor = torch.exp(-sigma * (overlap.square() - comp.square()[:, None]))
    factor = factor.masked_fill(torch.ones_like(factor, dtype=torch.bool).tril(), 1.0)
    return {"lowered": score * factor.amin(dim=0).clamp_max(1.0)}
