"""Oracle of the selective_scan task: one position after another, for all channels at once."""

import torch


def inputs(config, generator):
    """Draw rates of 1 to states, steps between 0.001 and 0.3, and projections of spread 1.

    Some channels forget within a few positions, and others keep what they had.
    """
    batch, channels, seq, states = (config[k] for k in ("batch", "channels", "seq", "states"))
    dtype = config["dtype"]

    def drawn(rows):
        return torch.randn(batch, rows, seq, generator=generator).to(dtype)

    step = 10.0 ** (2.0 * torch.rand(channels, generator=generator) - 3.0)
    spread = 0.7 + 0.6 * torch.rand(channels, states, generator=generator)
    return {
        "x": drawn(channels),
        "dt": drawn(channels),
        "z": drawn(channels),
        "rate": spread * torch.arange(1, states + 1),
        "b": drawn(states),
        "c": drawn(states),
        "bias": step + torch.log(-torch.expm1(-step)),
        "d": 0.5 + 0.5 * torch.rand(channels, generator=generator),
    }


def reference(x, dt, z, rate, b, c, bias, d, **_):
    """Return y [batch, channels, seq] and last [batch, channels, states]."""
    u = dt + bias[:, None]
    step = torch.logaddexp(u, torch.zeros_like(u))
    state = x.new_zeros(x.shape[0], *rate.shape)
    ys = []
    for t in range(x.shape[-1]):
        state = torch.exp(-step[:, :, t, None] * rate.abs()) * state
        state = state + (step[:, :, t] * x[:, :, t])[..., None] * b[:, None, :, t]
        ys.append((state * c[:, None, :, t]).sum(-1))
    y = torch.stack(ys, dim=-1) + d[:, None] * x
    return {"y": y * z * torch.sigmoid(z), "last": state}
