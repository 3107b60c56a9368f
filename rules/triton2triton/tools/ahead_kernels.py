"""What a launch of a compiled Triton kernel takes of a processor."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

Records = list[Any]
"""Kernels as Triton has compiled them."""


def resources(kernel: Any, platform: str, arch: str) -> dict[str, Any]:
    """The same figures as of a HIP kernel; bytes of shared memory include the dynamic ones."""
    found = _of_cuda(kernel, arch) if platform == "cuda" else _of_rocm(kernel, arch)
    return {
        **found,
        "name": kernel.metadata.name,
        "num_warps": kernel.metadata.num_warps,
        "num_stages": kernel.metadata.num_stages,
    }


def _of_cuda(kernel: Any, arch: str) -> dict[str, Any]:
    from cuda_architectures import ARCHITECTURES
    from cuda_resources import kernel_resources
    from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability

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


def _of_rocm(kernel: Any, arch: str) -> dict[str, Any]:
    from architectures import ARCHITECTURES
    from code_object import kernel_resources

    (found,) = kernel_resources(
        kernel.asm["hsaco"], ARCHITECTURES[arch], dynamic_shared=kernel.metadata.shared
    )
    return found.to_json()
