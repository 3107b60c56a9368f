"""Oracle of the acoustic_wave task: sums of shifted planes."""

import torch
from torch.nn.functional import pad


def inputs(config, generator):
    """Draw waves on their way through layers of different speed, stable everywhere.

    before differs from now a little, as one step makes it.
    """
    batch, height, width = config["batch"], config["height"], config["width"]
    down = torch.arange(height, dtype=torch.float32)[:, None]
    across = torch.arange(width, dtype=torch.float32)
    phase = 6.28 * torch.rand(batch, 1, 1, generator=generator)
    length = 4.0 + 12.0 * torch.rand(batch, 1, 1, generator=generator)
    wave = torch.sin((down + 0.7 * across) / length + phase)
    now = wave + 0.3 * torch.randn(batch, height, width, generator=generator)
    before = 0.98 * now + 0.05 * torch.randn(batch, height, width, generator=generator)
    layers = 0.2 + 0.4 * torch.rand(1 + height // 8, 1, generator=generator)
    speed = layers.repeat_interleave(8, dim=0)[:height]
    courant = speed + 0.05 * torch.rand(height, width, generator=generator)
    return {"now": now, "before": before, "courant": courant}


def reference(now, before, courant, steps, **_):
    """Return later and now_later [batch, height, width]."""
    for _ in range(steps):
        wide = pad(now, (1, 1, 1, 1))
        around = wide[:, :-2, 1:-1] + wide[:, 2:, 1:-1] + wide[:, 1:-1, :-2] + wide[:, 1:-1, 2:]
        after = 2.0 * now - before + courant.square() * (around - 4.0 * now)
        now, before = after, now
    return {"later": now, "now_later": before}
