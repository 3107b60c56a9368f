"""The compile gate of HIP kernels for AMD's processors.

    python tools/rocm_compile_gate.py --compiler=zig:DIR --libraries=DIR --arch=gfx942 \
        --source=candidate/softmax.hip --entry=softmax_f32 --entry=softmax_f16

Writes ``out/verdict.json`` with what each kernel takes of the processor and, on PASS,
``out/kernel.so``: the host's functions with the code of the kernels in it. Exits 0 for any
verdict, 3 when the tool chain failed, which says nothing about the kernel. Standard library only;
the kernel is compiled, never run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "hip" / "common"))
sys.path.append(str(Path(__file__).parents[1] / "hip" / "cpu" / "driver"))
sys.path.append(str(Path(__file__).parents[1] / "hip" / "rocm" / "driver"))

from architectures import ARCHITECTURES, Architecture
from compile_verdict import LIBRARY, Compiled, judge, with_resources
from faults import ToolchainFault
from rocm_builds import build_rocm_kernel
from rocm_compilers import find_rocm_compiler


def main(arguments: Sequence[str]) -> int:
    """Compile one kernel and write the verdict."""
    options = _parser().parse_args(arguments)
    return judge(options.source, lambda: _build(options))


def _build(options: argparse.Namespace) -> Compiled:
    kernels = build_rocm_kernel(
        options.source,
        LIBRARY,
        find_rocm_compiler(options.compiler, options.libraries),
        _architecture(options.arch),
        entries=options.entry,
    )
    return with_resources(options.arch, kernels, "spills")


def _architecture(name: str) -> Architecture:
    if name not in ARCHITECTURES:
        known = ", ".join(sorted(ARCHITECTURES))
        raise ToolchainFault(f"no architecture '{name}'; there are: {known}")
    return ARCHITECTURES[name]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="compile gate of HIP kernels for AMD")
    parser.add_argument("--compiler", required=True, metavar="zig:DIR|rocm:DIR")
    parser.add_argument("--libraries", type=Path, metavar="DIR")
    parser.add_argument("--arch", required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--entry", action="append", default=[], metavar="NAME")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
