"""Oracle of the gray_scott task: a convolution over periodic borders for each step."""

import torch
from torch.nn.functional import conv2d, pad


def inputs(config, generator):
    """Draw fields with patches where the reaction goes on, noise everywhere, and rates that differ.

    Away from patches there is much of the first substance and little of the second.
    """
    batch, rows, cols = config["batch"], config["rows"], config["cols"]
    down = torch.rand(batch, rows, 1, generator=generator) < 0.4
    across = torch.rand(batch, 1, cols, generator=generator) < 0.6
    patch = (down & across).float()
    noise = torch.rand(2, batch, rows, cols, generator=generator)
    return {
        "u": 1.0 - 0.5 * patch - 0.2 * noise[0],
        "v": 0.4 * patch + 0.2 * noise[1],
        "feed": 0.02 + 0.08 * torch.rand(batch, generator=generator),
        "kill": 0.04 + 0.08 * torch.rand(batch, generator=generator),
    }


def reference(u, v, feed, kill, steps, **_):
    """Return u_new and v_new [batch, rows, cols]."""
    near = ((0.05, 0.2, 0.05), (0.2, -1.0, 0.2), (0.05, 0.2, 0.05))
    weights = torch.tensor(near, dtype=u.dtype, device=u.device)[None, None]
    feed, kill = feed[:, None, None], kill[:, None, None]
    for _ in range(steps):
        lap_u, lap_v = (
            conv2d(pad(w[:, None], (1, 1, 1, 1), mode="circular"), weights)[:, 0] for w in (u, v)
        )
        reaction = u * v**2
        u_next = u + 0.32 * lap_u - reaction + feed * (1 - u)
        v_next = v + 0.16 * lap_v + reaction - (feed + kill) * v
        u, v = u_next.clamp(0, 1), v_next.clamp(0, 1)
    return {"u_new": u, "v_new": v}
