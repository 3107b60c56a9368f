"""A driver that stands in for a GPU's: launches compile, and nothing else happens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
import triton.runtime.jit
from ahead_kernels import Records
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.errors import OutOfResources

_PROCESSORS = {"cuda": 132, "rocm": 304}
"""Of the largest processors of the day: what a kernel is told when it asks how many there are."""
_HIP_VERSION = "7.1"
"""What PyTorch for AMD's processors is built with, and others do not have."""


@dataclass(frozen=True)
class Device:
    """The GPU that is stood in for: what of it a module or Triton may ask."""

    platform: str
    arch: str
    wave: int
    shared_bytes: int
    """What a block can have of shared memory."""

    @classmethod
    def of(cls, platform: str, arch: str) -> Device:
        """The device of an architecture. Raises ValueError for an unknown one."""
        if platform == "cuda":
            from cuda_architectures import ARCHITECTURES as PROCESSORS
            from cuda_architectures import WARP

            sizes = {name: (WARP, of.block_shared_bytes) for name, of in PROCESSORS.items()}
        else:
            from architectures import ARCHITECTURES

            sizes = {name: (of.wave, of.block_shared) for name, of in ARCHITECTURES.items()}
        if arch not in sizes:
            known = ", ".join(sizes)
            raise ValueError(f"cannot compile Triton for '{arch}', only for {known}")
        return cls(platform, arch, *sizes[arch])

    @property
    def capability(self) -> tuple[int, int]:
        """As PyTorch counts: (9, 0) of ``sm_90``, (9, 4) of ``gfx942``, (11, 0) of ``gfx1100``."""
        digits = self.arch.removeprefix("sm_").removeprefix("gfx")
        major, minor = (digits[:-1], digits[-1]) if self.platform == "cuda" else _split(digits)
        return int(major), int(minor)

    @property
    def target(self) -> GPUTarget:
        """What Triton compiles for."""
        if self.platform == "cuda":
            return GPUTarget("cuda", int(self.arch.removeprefix("sm_")), self.wave)
        return GPUTarget("hip", self.arch, self.wave)


def _split(digits: str) -> tuple[str, str]:
    """Major and minor of AMD's ``942`` or ``1201``; the last digit is the stepping."""
    return digits[:-2], digits[-2]


def stand_in(platform: str, arch: str) -> Records:
    """Have this process compile for ``arch`` (``sm_90``, ``gfx942``); every kernel is recorded."""
    records: Records = []
    device = Device.of(platform, arch)
    driver.set_active(_Driver(device))
    _describe_device(device)
    launch = triton.runtime.jit.JITFunction.run

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **options: Any) -> Any:
        del grid, warmup
        kernel = launch(self, *args, grid=None, warmup=True, **options)
        if kernel is None:
            return None
        if kernel.metadata.shared > device.shared_bytes:  # as a launch finds; a search goes on
            raise OutOfResources(kernel.metadata.shared, device.shared_bytes, "shared memory")
        if all(kernel is not known for known in records):
            records.append(kernel)
        return kernel

    triton.runtime.jit.JITFunction.run = compile_only
    return records


class _Driver:
    """What Triton asks of the active driver."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.utils = SimpleNamespace(get_device_properties=lambda _device: _properties(device))

    def get_current_target(self) -> GPUTarget:
        """What is compiled for."""
        return self._device.target

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def get_current_stream(self, _device: int = 0) -> int:
        """The default one."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """Where tensors are: nowhere."""
        return torch.device("meta")

    def get_benchmarker(self) -> Callable[..., Sequence[float]]:
        """All of a search's configs compile; the first one wins."""

        def call(kernel_call: Callable[[], object], **_options: Any) -> Sequence[float]:
            kernel_call()
            return [1.0, 1.0, 1.0]

        return call


def _properties(device: Device) -> Mapping[str, int]:
    return {
        "max_shared_mem": device.shared_bytes,
        "multiprocessor_count": _PROCESSORS[device.platform],
        "warpSize": device.wave,
    }


def _describe_device(device: Device) -> None:
    """Answer what a module asks PyTorch about the device."""
    properties = SimpleNamespace(
        name=device.arch,
        gcnArchName=device.arch,
        major=device.capability[0],
        minor=device.capability[1],
        warp_size=device.wave,
        multi_processor_count=_PROCESSORS[device.platform],
        shared_memory_per_block_optin=device.shared_bytes,
    )
    answers: Mapping[str, object] = {
        "is_available": True,
        "current_device": 0,
        "device_count": 1,
        "get_device_properties": properties,
        "get_device_capability": device.capability,
        "get_device_name": device.arch,
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, partial(_answer, answer))
    if device.platform == "rocm":
        torch.version.hip = _HIP_VERSION


def _answer(answer: object, *_asked: object) -> object:
    return answer
