"""Oracle of the mamba_state_update task: one step of all states at once."""

import torch
from torch.nn import functional


def inputs(config, generator):
    """Draw states with a size a head, projections, rates of 1 to 16, and biases of small steps."""
    batch, heads, dim = config["batch"], config["heads"], config["dim"]
    groups, states, dtype = config["groups"], config["states"], config["dtype"]
    size = 0.2 + torch.rand(heads, 1, 1, generator=generator)
    state = size * torch.randn(batch, heads, dim, states, generator=generator)
    x, gate = (torch.randn(batch, heads, dim, generator=generator) for _ in range(2))
    b, c = (torch.randn(batch, groups, states, generator=generator) for _ in range(2))
    dt = torch.randn(batch, heads, generator=generator)
    step = 10.0 ** (2.0 * torch.rand(heads, generator=generator) - 2.5)
    return {
        "state": state.to(dtype),
        "x": (0.3 + x).to(dtype),
        "dt": dt.to(dtype),
        "b": b.to(dtype),
        "c": c.to(dtype),
        "gate": gate.to(dtype),
        "rate": 1.0 + 15.0 * torch.rand(heads, generator=generator),
        "dt_bias": step + torch.log(-torch.expm1(-step)),
        "skip": 1.0 + 0.3 * torch.randn(heads, generator=generator),
    }


def reference(state, x, dt, b, c, gate, rate, dt_bias, skip, heads, groups, **_):
    """Return state_new [batch, heads, dim, states] and y [batch, heads, dim]."""
    u = dt + dt_bias
    step = torch.logaddexp(u, torch.zeros_like(u))
    b, c = (t.repeat_interleave(heads // groups, dim=1) for t in (b, c))
    keep = torch.exp(-rate.abs() * step)[..., None, None]
    new = keep * state + torch.einsum("bh,bhd,bhn->bhdn", step, x, b)
    y = torch.einsum("bhdn,bhn->bhd", new, c) + skip[:, None] * x
    return {"state_new": new, "y": y * functional.silu(gate)}
