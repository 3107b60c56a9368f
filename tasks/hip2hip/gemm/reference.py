"""Oracle of the gemm task: the matrix product."""

import torch


def inputs(config, generator):
    """Draw a [m, k] and b [k, n], normal, a scaled so that c has about unit variance."""
    m, n, k, dtype = config["m"], config["n"], config["k"], config["dtype"]
    a = torch.randn(m, k, generator=generator) * k**-0.5
    b = torch.randn(k, n, generator=generator)
    return {"a": a.to(dtype), "b": b.to(dtype)}


def reference(a, b, **_):
    """Return c [m, n] = a @ b."""
    return {"c": torch.einsum("mk,kn->mn", a, b)}
