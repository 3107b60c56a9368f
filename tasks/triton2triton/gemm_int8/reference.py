"""Oracle of the gemm_int8 task: exact sums, scaled."""

import torch


def inputs(config, generator):
    """Draw quantised activations and weights that use their range, scales, and biases.

    Some columns of x are three times louder. Scales differ by a factor of ten, and y is near 1.
    """
    m, n, k = config["m"], config["n"], config["k"]
    loud = 12.0 + 24.0 * (torch.rand(k, generator=generator) < 0.03)
    x = loud * torch.randn(m, k, generator=generator)
    weight = 35.0 * torch.randn(n, k, generator=generator)
    usual = 0.05 / 35.0 / k**0.5

    def scales(count):
        return 10.0 ** (torch.rand(count, generator=generator) - 0.5)

    return {
        "x": x.round().clamp(-127, 127).to(torch.int8),
        "weight": weight.round().clamp(-127, 127).to(torch.int8),
        "x_scale": scales(m),
        "w_scale": usual * scales(n),
        "bias": (0.5 * torch.randn(n, generator=generator)).to(config["dtype"]),
    }


def reference(x, weight, x_scale, w_scale, bias, **_):
    """Return y [m, n]."""
    exact = x.to(bias.dtype) @ weight.to(bias.dtype).T
    return {"y": exact * x_scale[:, None] * w_scale + bias}
