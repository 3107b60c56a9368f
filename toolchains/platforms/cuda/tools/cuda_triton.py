"""How Triton compiles for NVIDIA's GPUs that need not be there."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ahead_platform import AheadDevice, AheadPlatform
from cuda_architectures import ARCHITECTURES, WARP
from cuda_resources import kernel_resources
from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability

_PROCESSORS = 132
"""Multiprocessors of an H100 or H200."""


def _device(arch: str) -> AheadDevice:
    digits = arch.removeprefix("sm_")
    return AheadDevice(
        arch=arch,
        capability=(int(digits[:-1]), int(digits[-1])),  # (9, 0) of sm_90, (12, 0) of sm_120
        backend="cuda",
        target=int(digits),
        wave=WARP,
        shared_bytes=ARCHITECTURES[arch].block_shared_bytes,
        processors=_PROCESSORS,
        torch_device="cuda",
    )


def _resources(kernel: Any, arch: str) -> dict[str, Any]:
    """As ptxas reports them; shared memory includes the dynamic part."""
    number = int(arch.removeprefix("sm_"))
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(kernel.asm["ptx"])
        command = [get_ptxas(number).path, "-v", f"--gpu-name={sm_arch_from_capability(number)}"]
        command += [str(source), "-o", str(cubin)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        (found,) = kernel_resources(
            done.stderr + done.stdout,
            cubin.read_bytes(),
            ARCHITECTURES[arch],
            dynamic_shared=kernel.metadata.shared,
        )
    return found.to_json()


PLATFORM = AheadPlatform(tuple(ARCHITECTURES), _device, _resources, handed_on=(".json", ".cubin"))
