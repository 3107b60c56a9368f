"""The CPU as a platform of HIP's driver."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from compilers import find_compiler
from cpu_builds import build_kernel, build_runtime
from hip_platforms import HipPlatform, Request
from sanitized import build_sanitized


def _add_kernel_options(parser: ArgumentParser) -> None:
    parser.add_argument("--wave", type=int, choices=(32, 64), default=64, help="lanes of a wave")


def _build_kernel(request: Request) -> tuple[()]:
    compiler = find_compiler(request.compiler)
    wave = request.options.wave
    if request.places:
        build_sanitized(request.source, request.output, request.places, compiler, wave_size=wave)
    else:
        build_kernel(
            request.source,
            request.output,
            compiler,
            wave_size=wave,
            include=request.include,
            entries=request.entries,
        )
    return ()


def _add_runtime_options(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--sanitize", action="store_true", help="with what sanitized kernels call in it"
    )


def _build_runtime(options: Namespace) -> None:
    build_runtime(options.output, find_compiler(options.compiler), sanitize=options.sanitize)


PLATFORM = HipPlatform(
    doc="the host's CPU",
    compilers=("zig:DIR", "cxx:PATH"),
    add_kernel_options=_add_kernel_options,
    build_kernel=_build_kernel,
    watched="the runtime's sanitizer, which finds faults of memory and barriers",
    add_runtime_options=_add_runtime_options,
    build_runtime=_build_runtime,
)
