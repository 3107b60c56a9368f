"""NVIDIA's processors as a platform of HIP's driver."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path

from compilers import compiler_choice
from cuda_architectures import ARCHITECTURES
from cuda_builds import build_cuda_kernel
from cuda_hosts import find_host
from cuda_resources import KernelResources
from cuda_tools import find_cuda
from hip_platforms import HipPlatform, Request
from kernel_library import publish

_HOSTS = ("zig:DIR", "cxx:PATH")


def _add_kernel_options(parser: ArgumentParser) -> None:
    parser.add_argument("--arch", choices=sorted(ARCHITECTURES), required=True, metavar="sm_NN")
    parser.add_argument(
        "--host", type=compiler_choice(*_HOSTS), required=True, metavar="|".join(_HOSTS)
    )
    parser.add_argument("--headers", type=Path, metavar="DIR", help="the C++ library's, for zig")


def _build_kernel(request: Request) -> Sequence[KernelResources]:
    options = request.options
    return build_cuda_kernel(
        request.source,
        request.output,
        find_cuda(request.compiler),
        find_host(options.host, options.headers),
        ARCHITECTURES[options.arch],
        include=request.include,
        entries=request.entries,
        places=request.places,
    )


def _build_runtime(options: Namespace) -> None:
    publish(find_cuda(options.compiler).runtime, options.output)


PLATFORM = HipPlatform(
    doc="NVIDIA's processors",
    compilers=("nvcc:DIR",),
    add_kernel_options=_add_kernel_options,
    build_kernel=_build_kernel,
    spilled="bytes spilled",
    watched="a tool to which the code names its lines",
    build_runtime=_build_runtime,
)
