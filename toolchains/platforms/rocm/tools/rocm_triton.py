"""How Triton compiles for AMD's GPUs that need not be there."""

from __future__ import annotations

from typing import Any

from ahead_platform import AheadDevice, AheadPlatform
from architectures import ARCHITECTURES
from code_object import kernel_resources

_PROCESSORS = 304
"""Compute units of an MI300X."""

_HIP_VERSION = "7.1"
"""The version of HIP that a PyTorch for AMD's GPUs names."""


def _device(arch: str) -> AheadDevice:
    digits = arch.removeprefix("gfx")
    return AheadDevice(
        arch=arch,
        # (9, 4) of gfx942, (11, 0) of gfx1100: the last digit is the stepping.
        capability=(int(digits[:-2]), int(digits[-2])),
        backend="hip",
        target=arch,
        wave=ARCHITECTURES[arch].wave,
        shared_bytes=ARCHITECTURES[arch].block_shared,
        processors=_PROCESSORS,
        torch_device="cuda",
        versions={"hip": _HIP_VERSION},
    )


def _resources(kernel: Any, arch: str) -> dict[str, Any]:
    """As the code object says; shared memory includes the dynamic part."""
    (found,) = kernel_resources(
        kernel.asm["hsaco"], ARCHITECTURES[arch], dynamic_shared=kernel.metadata.shared
    )
    return found.to_json()


# No kernels are handed on: their names in Triton's cache depend on where Triton is installed.
PLATFORM = AheadPlatform(tuple(ARCHITECTURES), _device, _resources)
