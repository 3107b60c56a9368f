"""A driver in place of a GPU's: launches only compile."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import torch
import triton
from ahead_platform import AheadDevice, AheadPlatform
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITCallable, JITFunction

Records = list[Any]
"""Kernels as Triton has compiled them."""


def stand_in(platform: AheadPlatform, arch: str) -> Records:
    """Have this process compile for an architecture; every kernel is recorded.

    Raises ValueError for an architecture that the platform does not compile for.
    """
    records: Records = []
    if arch not in platform.architectures:
        known = ", ".join(platform.architectures)
        raise ValueError(f"cannot compile Triton for '{arch}', only for {known}")
    device = platform.device(arch)
    driver.set_active(_Driver(device))
    _describe_device(device)
    _rename_sources()
    launch = JITFunction.run

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

    JITFunction.run = compile_only
    return records


def _rename_sources() -> None:
    """Name Triton's own files in line tables by their path below the folder of packages."""
    home = str(Path(triton.__file__).parent.parent)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] != "triton":
            continue
        for value in vars(module).values():
            if isinstance(value, JITCallable) and isinstance(value.fn, FunctionType):
                code = value.fn.__code__
                relative = code.co_filename.removeprefix(home)
                value.fn.__code__ = code.replace(co_filename=relative)


class _Driver:
    """The active driver, as Triton uses it."""

    def __init__(self, device: AheadDevice) -> None:
        self._device = device
        self.utils = SimpleNamespace(get_device_properties=lambda _device: _properties(device))

    def get_current_target(self) -> GPUTarget:
        """The target to compile for."""
        device = self._device
        return GPUTarget(device.backend, device.target, device.wave)

    def get_current_device(self) -> int:
        """The number of the only device."""
        return 0

    def get_current_stream(self, _device: int = 0) -> int:
        """The default one."""
        return 0

    def get_active_torch_device(self) -> torch.device:
        """The device of tensors: they have no data."""
        return torch.device("meta")

    def get_benchmarker(self) -> Callable[..., Sequence[float]]:
        """A benchmarker that compiles all configs of a search; the first one wins."""

        def call(kernel_call: Callable[[], object], **_options: Any) -> Sequence[float]:
            kernel_call()
            return [1.0, 1.0, 1.0]

        return call


def _properties(device: AheadDevice) -> Mapping[str, int]:
    return {
        "max_shared_mem": device.shared_bytes,
        "multiprocessor_count": device.processors,
        "warpSize": device.wave,
    }


def _describe_device(device: AheadDevice) -> None:
    """Answer what a module asks PyTorch about the device."""
    properties = SimpleNamespace(
        name=device.arch,
        gcnArchName=device.arch,
        major=device.capability[0],
        minor=device.capability[1],
        warp_size=device.wave,
        multi_processor_count=device.processors,
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
        setattr(torch.get_device_module(device.torch_device), name, partial(_answer, answer))
    for name, version in device.versions.items():
        setattr(torch.version, name, version)


def _answer(answer: object, *_asked: object) -> object:
    return answer
