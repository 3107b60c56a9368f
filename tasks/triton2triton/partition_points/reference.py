"""Oracle of the partition_points task: a stable sort of what is kept."""

import torch


def inputs(config, generator):
    """Draw a scan: walls at different distances, many points near the car, and some behind walls.

    Points come in the order of the scanner's angle, so that those that are dropped lie in runs. A
    few coordinates are at a limit exactly, which may belong to what is kept or not.
    """
    points, features = config["points"], config["features"]
    angle = 6.2832 * torch.arange(points) / points
    wall = 45.0 + 40.0 * torch.sin(3.0 * angle + 6.3 * torch.rand(1, generator=generator))
    away = wall * torch.rand(points, generator=generator) ** 0.5
    near = torch.rand(points, generator=generator) < 0.15
    away = torch.where(near, 2.0 * torch.rand(points, generator=generator), away)
    height = -1.8 + 0.15 * away * torch.randn(points, generator=generator)
    point = torch.randn(points, features, generator=generator)
    point[:, 0], point[:, 1], point[:, 2] = away * angle.cos(), away * angle.sin(), height
    limit = torch.where(near, config["near"], config["reach"])[:, None]
    limit = limit * point[:, :2].sign()
    upper = torch.rand(points, 1, generator=generator) < 0.5
    limit = torch.cat((limit, torch.where(upper, config["high"], config["low"])), dim=1)
    exact = torch.rand(points, 3, generator=generator) < 0.04
    point[:, :3] = torch.where(exact, limit, point[:, :3])
    return {"point": point}


def reference(point, reach, low, high, near, **_):
    """Return moved [points, features], index [points] and count [1]."""
    flat, z = point[:, :2].abs(), point[:, 2]
    inside = (flat < reach).all(dim=1) & (z >= low) & (z < high) & (flat >= near).any(dim=1)
    index = torch.argsort((~inside).to(torch.uint8), stable=True)
    count = inside.sum().reshape(1)
    return {"moved": point[index], "index": index.to(torch.int32), "count": count.to(torch.int32)}
