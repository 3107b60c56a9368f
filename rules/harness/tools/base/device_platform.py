"""The facts about a platform with devices that the judge and its runners need.

Each platform's directory provides them: ``toolchains/platforms/NAME/tools/NAME_device.py`` defines
``PLATFORM``, a ``DevicePlatform``. An action gets only its own platform's file, beside ``gate.py``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from base.program import MachineFault


@dataclass(frozen=True)
class DriverLibrary:
    """A driver with the functions of CUDA's driver. The judge uses CUDA's names for them.

    Attributes:
        names: file names of the library, the newest first.
        prefix: the prefix of its functions, in place of ``cu``.
        others: its functions whose names differ otherwise, by CUDA's name.
        brought_by: the Python module that may bring its own driver; empty for none.
        descriptors_by_value: the first version that takes a file descriptor by value; earlier
            versions take a pointer to it.
    """

    names: tuple[str, ...]
    prefix: str = "cu"
    others: Mapping[str, str] = field(default_factory=dict, hash=False)
    brought_by: str = ""
    descriptors_by_value: int = 0

    def spell(self, function: str) -> str:
        """The driver's name of a function that CUDA calls ``function``."""
        return self.others.get(function, self.prefix + function.removeprefix("cu"))


@dataclass(frozen=True)
class DevicePlatform:
    """A platform with devices.

    Attributes:
        name: for example ``cuda``.
        maker: the maker of its devices, for messages.
        driver: the library that the judge and the native runner call.
        torch_device: the type of the devices that PyTorch computes on.
        torch_version: the attribute of ``torch.version`` that a PyTorch build for them sets.
        out_of_memory: the text of PyTorch's errors when a device runs out of memory.
        device_files: patterns below ``/dev`` for the files that a runner may use.
        descriptions: paths below ``/sys`` that the driver reads.
        variables: environment variables that choose a device; runners inherit them.
        caches: variables for directories in which the driver keeps compiled code, each with the
            directory's name.
        gated: whether its driver compiles PTX. The kernel that holds a batch back until the judge
            opens the gate is written in PTX.
        least_cache_bytes: minimum for the last-level cache, if the driver reports a smaller one.
        triton_utilities: Triton's module and class that are compiled once for a machine.
        triton_launcher: compiles the code with which Triton launches kernels whose parameters have
            these types, ``*`` for any pointer; None if runners compile it.
        state: clocks, temperature, power and throttling now, of the device at a PCI address;
            empty if they are unknown. None if the platform cannot tell.
    """

    name: str
    maker: str
    driver: DriverLibrary
    torch_device: str
    torch_version: str
    out_of_memory: tuple[str, ...]
    device_files: tuple[str, ...]
    triton_utilities: tuple[str, str]
    descriptions: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    caches: Mapping[str, str] = field(default_factory=dict, hash=False)
    gated: bool = False
    least_cache_bytes: int = 0
    triton_launcher: Callable[[Sequence[str]], object] | None = field(default=None, hash=False)
    state: Callable[[bytes], Mapping[str, int]] | None = field(default=None, hash=False)


@cache
def device_platform(name: str) -> DevicePlatform:
    """Load the description of platform ``name``. Raises MachineFault if it has none."""
    module = f"{name}_device"
    try:
        found: DevicePlatform = importlib.import_module(module).PLATFORM
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise MachineFault(f"this action has no {module}.py for its platform '{name}'") from None
    return found
