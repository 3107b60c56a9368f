"""The least time in which a machine can do the work; less means a false or unfinished result."""

from __future__ import annotations

import os
from dataclasses import dataclass

from base import shapes
from base.program import Config, Signature
from terms.dtypes import DTYPES


@dataclass(frozen=True)
class Device:
    """Generous upper limits of a device's speed.

    Attributes:
        bytes_per_second: of its fastest memory.
        flops_per_second: of its fastest arithmetic.
    """

    bytes_per_second: float
    flops_per_second: float


PER_CORE = Device(bytes_per_second=200e9, flops_per_second=2e12)
ANY_GPU = Device(bytes_per_second=40e12, flops_per_second=20e15)


def device(platform: str, told: tuple[float, float] = (0.0, 0.0)) -> Device:
    """The model of this machine's device on ``platform``.

    ``told`` are the ceilings that the device itself reports, zero if it reports none.
    """
    if platform != "cpu":
        return Device(
            bytes_per_second=told[0] or ANY_GPU.bytes_per_second,
            flops_per_second=told[1] or ANY_GPU.flops_per_second,
        )
    # Processors that are offline now may have worked while calls were timed.
    cores = max(os.cpu_count() or 1, os.sysconf("SC_NPROCESSORS_CONF"))
    return Device(PER_CORE.bytes_per_second * cores, PER_CORE.flops_per_second * cores)


def traffic(signature: Signature, config: Config) -> int:
    """Bytes of all inputs and outputs, each counted once: the least traffic of a call."""
    total = 0
    signature = signature.of(config)
    for argument in (*signature.inputs, *signature.outputs):
        size = DTYPES[shapes.dtype_name(argument, config)].size
        for extent in shapes.shape(argument, config.dims):
            size *= extent
        total += size
    return total


def floor_ns(signature: Signature, flops: str, config: Config, model: Device) -> float:
    """The least time of one call: all of its outputs written and its operations done.

    Inputs are not counted here, since a correct kernel may not need them all (a gather reads
    only what its indices name).
    """
    outputs = Signature((), signature.results, (), signature.dims)
    moving = traffic(outputs, config) / model.bytes_per_second
    computing = shapes.evaluate(flops, config.dims) / model.flops_per_second
    return max(moving, computing) * 1e9
