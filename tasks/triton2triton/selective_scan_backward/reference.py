"""Oracle of the selective_scan_backward task: all states forward, then their gradients backward."""

import torch


def inputs(config, generator):
    """Draw rates of 1 to states, steps between 0.001 and 0.3, and gradients with a size a position.

    Some channels forget within a few positions, and others keep what they had.
    """
    batch, seq, channels = config["batch"], config["seq"], config["channels"]
    states, dtype = config["states"], config["dtype"]

    def drawn(columns):
        return torch.randn(batch, seq, columns, generator=generator)

    step = 10.0 ** (2.0 * torch.rand(channels, generator=generator) - 3.0)
    spread = 0.7 + 0.6 * torch.rand(channels, states, generator=generator)
    size = 0.2 + torch.rand(batch, seq, 1, generator=generator)
    return {
        "x": (0.3 + drawn(channels)).to(dtype),
        "dt": drawn(channels).to(dtype),
        "rate": spread * torch.arange(1, states + 1),
        "b": drawn(states).to(dtype),
        "c": drawn(states).to(dtype),
        "bias": step + torch.log(-torch.expm1(-step)),
        "d": 0.5 + 0.5 * torch.rand(channels, generator=generator),
        "dy": (size * (0.2 + drawn(channels))).to(dtype),
    }


def reference(x, dt, rate, b, c, bias, d, dy, seq, **_):
    """Return dx, ddt, db, dc, drate, dbias and dd."""
    u, speed = dt + bias, rate.abs()
    step = torch.logaddexp(u, torch.zeros_like(u))
    before = [x.new_zeros(x.shape[0], *rate.shape)]
    for t in range(seq):
        kept = torch.exp(-step[:, t, :, None] * speed) * before[t]
        before.append(kept + (step[:, t] * x[:, t])[..., None] * b[:, t, None])
    dx, dstep, drate = d * dy, torch.empty_like(x), torch.zeros_like(rate)
    db, dc = torch.empty_like(b), torch.empty_like(c)
    slope = torch.zeros_like(before[0])
    for t in reversed(range(seq)):
        slope = slope + dy[:, t, :, None] * c[:, t, None]
        dc[:, t] = (dy[:, t, :, None] * before[t + 1]).sum(dim=1)
        db[:, t] = (slope * (step[:, t] * x[:, t])[..., None]).sum(dim=1)
        along = (slope * b[:, t, None]).sum(dim=-1)
        dx[:, t] += step[:, t] * along
        decay = torch.exp(-step[:, t, :, None] * speed)
        lost = slope * decay * before[t]
        dstep[:, t] = x[:, t] * along - (lost * speed).sum(dim=-1)
        drate -= (lost * step[:, t, :, None]).sum(dim=0)
        slope = slope * decay
    ddt = dstep * torch.sigmoid(u)
    return {
        "dx": dx,
        "ddt": ddt,
        "db": db,
        "dc": dc,
        "drate": drate,
        "dbias": ddt.sum(dim=(0, 1)),
        "dd": (dy * x).sum(dim=(0, 1)),
    }
