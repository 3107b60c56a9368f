"""AMD's processors as a platform of HIP's driver."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from architectures import ARCHITECTURES
from code_object import KernelResources
from hip_platforms import HipPlatform, Request
from rocm_builds import build_rocm_kernel
from rocm_compilers import find_rocm_compiler


def _add_kernel_options(parser: ArgumentParser) -> None:
    parser.add_argument("--arch", choices=sorted(ARCHITECTURES), required=True, metavar="gfxNNN")
    parser.add_argument(
        "--libraries", type=Path, metavar="DIR", help="Triton's backends/amd, for zig"
    )


def _build_kernel(request: Request) -> Sequence[KernelResources]:
    return build_rocm_kernel(
        request.source,
        request.output,
        find_rocm_compiler(request.compiler, request.options.libraries),
        ARCHITECTURES[request.options.arch],
        include=request.include,
        entries=request.entries,
    )


PLATFORM = HipPlatform(
    doc="AMD's processors",
    compilers=("zig:DIR", "rocm:DIR"),
    add_kernel_options=_add_kernel_options,
    build_kernel=_build_kernel,
    spilled="spills",
)
