"""Oracle of the deformable_attention task: PyTorch's sampling from a grid, one map at a time."""

import torch
from torch.nn.functional import grid_sample


def inputs(config, generator):
    """Draw maps of which each is about half as high and wide as the one before, and points.

    Points lie around a query's own place, a few of them far away and outside. Neighbouring
    pixels differ, and heads have their own size. A few tokens, before or after
    the maps, belong to none.
    """
    batch, tokens, queries = config["batch"], config["tokens"], config["queries"]
    heads, dim, dtype = config["heads"], config["dim"], config["dtype"]
    levels, points = config["levels"], config["points"]
    whole = sum(0.25**level for level in range(levels))
    size, begin = torch.empty(levels, 2, dtype=torch.int32), torch.empty(levels, dtype=torch.int32)
    used = 0
    for level in range(levels):
        pixels = max(1, int(0.25**level / whole * (tokens - levels)))
        aspect = 0.5 + torch.rand((), generator=generator).item()
        height = min(pixels, max(1, round((aspect * pixels) ** 0.5)))
        size[level] = torch.tensor([height, pixels // height])
        begin[level] = used
        used += height * (pixels // height)
    begin += torch.randint(tokens - used + 1, (1,), generator=generator, dtype=torch.int32)
    largest = 0.3 + 2.0 * torch.rand(heads, 1, generator=generator)
    value = largest * (0.3 + torch.randn(batch, tokens, heads, dim, generator=generator))
    shape = batch, queries, heads, levels, points
    spread = torch.where(torch.rand(*shape, 1, generator=generator) < 0.1, 0.5, 0.06)
    own = torch.rand(batch, queries, 1, 1, 1, 2, generator=generator)
    place = own + spread * torch.randn(*shape, 2, generator=generator)
    score = 1.5 * torch.randn(*shape, generator=generator)
    weight = torch.softmax(score.flatten(-2), dim=-1).reshape(shape)
    return {
        "value": value.to(dtype),
        "size": size,
        "begin": begin,
        "place": place,
        "weight": weight,
    }


def reference(value, size, begin, place, weight, **_):
    """Return y [batch, queries, heads, dim]."""
    batch, _, heads, dim = value.shape
    y = 0.0
    for level, (first, (height, width)) in enumerate(
        zip(begin.tolist(), size.tolist(), strict=True)
    ):
        image = value[:, first : first + height * width].permute(0, 2, 3, 1)
        image = image.reshape(batch * heads, dim, height, width)
        grid = 2.0 * place[:, :, :, level].transpose(1, 2).flatten(0, 1) - 1.0
        found = grid_sample(image, grid, padding_mode="zeros", align_corners=False)
        share = weight[:, :, :, level].transpose(1, 2).flatten(0, 1)
        y = y + (found * share[:, None]).sum(dim=-1)
    return {"y": y.unflatten(0, (batch, heads)).permute(0, 3, 1, 2).contiguous()}
