"""Oracle and checker of the nms task: some boxes after others, the best first."""

import torch

NEAR = 1e-5
BLOCK = 256


def inputs(config, generator):
    """Draw boxes around a few things of different sizes, and some that are anywhere.

    Most of a thing's boxes overlap by a half to all of their area.
    """
    images, boxes = config["images"], config["boxes"]
    things = 4 + boxes // 20
    centre = 640.0 * torch.rand(images, things, 2, generator=generator)
    size = 20.0 * 12.0 ** torch.rand(images, things, 2, generator=generator)
    own = torch.randint(0, things, (images, boxes, 1), generator=generator).expand(-1, -1, 2)
    centre, size = centre.gather(1, own), size.gather(1, own)
    away = 0.12 + 2.0 * (torch.rand(images, boxes, 1, generator=generator) < 0.15)
    middle = centre + away * size * torch.randn(images, boxes, 2, generator=generator)
    half = size * (0.35 + 0.3 * torch.rand(images, boxes, 2, generator=generator))
    return {"box": torch.cat((middle - half, middle + half), dim=-1)}


def reference(box, limit, **_):
    """Return keep [images, boxes] and count [images]."""
    keep = torch.zeros(box.shape[:2], dtype=torch.bool, device=box.device)
    for image in range(box.shape[0]):
        better = box[image, :0]
        for first in range(0, box.shape[1], BLOCK):
            some = box[image, first : first + BLOCK]
            kept = chosen(some, ~(overlap(better, some) > limit).any(dim=0), limit)
            keep[image, first : first + BLOCK] = kept
            better = torch.cat((better, some[kept]))
    return {"keep": keep.to(torch.uint8), "count": keep.sum(dim=1).to(torch.int32)}


def chosen(box, free, limit):
    """Which of boxes [a, 4] are kept, if those that are not ``free`` are suppressed already.

    Every turn settles at least the best box that was not: the last turn changes none.
    """
    rivals = (overlap(box, box) > limit).triu(1)
    kept, before = free, None
    while before is None or not torch.equal(kept, before):
        kept, before = free & ~(rivals & kept[:, None]).any(dim=0), kept
    return kept


def overlap(these, those):
    """Intersections over unions of boxes [a, 4] and [b, 4], as [a, b]."""
    sides = [
        torch.minimum(these[:, None, axis + 2], those[:, axis + 2])
        - torch.maximum(these[:, None, axis], those[:, axis])
        for axis in (0, 1)
    ]
    both = sides[0].clamp_min(0) * sides[1].clamp_min(0)
    areas = [(b[:, 2:] - b[:, :2]).clamp_min(0).prod(dim=-1) for b in (these, those)]
    union = areas[0][:, None] + areas[1] - both
    return torch.where(union > 0, both / union, 0.0)


def check(inputs, outputs, expected):
    """Accept what agrees with itself: each box is kept or suppressed by those kept before it."""
    keep, count = outputs["keep"], outputs["count"]
    limit = inputs["limit"]
    if ((keep != 0) & (keep != 1)).any():
        return "keep: elements are neither 0 nor 1"
    total = keep.sum(dim=1, dtype=torch.int32)
    if (total != count).any():
        image = int((total != count).nonzero()[0])
        said = count[image].item()
        return f"count[{image}]: {total[image].item()} boxes are kept, got {said}"
    for image, kept in enumerate(keep.bool()):
        box = inputs["box"][image].to(keep.device).double()
        place = torch.arange(len(kept), device=keep.device)
        better = kept.nonzero()[:, 0]
        before = better[:, None] < place
        most = (overlap(box[better], box) * before).amax(dim=0) if len(better) else kept * 0.0
        wrong = torch.where(kept, most > limit + NEAR, most < limit - NEAR)
        if wrong.any():
            first = int(wrong.nonzero()[0])
            said = "kept" if kept[first] else "suppressed"
            worst = most[first].item()
            return f"keep[{image}, {first}]: {said}, but the largest overlap is {worst:.6g}"
    return None
