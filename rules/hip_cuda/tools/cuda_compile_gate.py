"""The compile gate of HIP kernels for NVIDIA's processors.

    python tools/cuda_compile_gate.py --compiler=nvcc:DIR --host=zig:DIR --headers=DIR \
        --arch=sm_90 --source=candidate/softmax.hip --entry=softmax_f32 --entry=softmax_f16

Writes ``out/verdict.json`` with what each kernel takes of the processor and, on PASS,
``out/kernel.so``: the host's functions with the code of the kernels in it. With ``--sanitize``
the code names its lines, and ``out/kernel.places.json`` says where they are. Exits 0 for any
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
sys.path.append(str(Path(__file__).parents[1] / "hip" / "cuda" / "driver"))

from compile_verdict import LIBRARY, PLACES, Compiled, judge, with_resources
from cuda_architectures import architecture
from cuda_builds import build_cuda_kernel
from cuda_hosts import find_host
from cuda_tools import find_cuda


def main(arguments: Sequence[str]) -> int:
    """Compile one kernel and write the verdict."""
    options = _parser().parse_args(arguments)
    made = (LIBRARY, PLACES) if options.sanitize else ()  # which is read beside the verdict
    return judge(options.source, lambda: _build(options), made)


def _build(options: argparse.Namespace) -> Compiled:
    kernels = build_cuda_kernel(
        options.source,
        LIBRARY,
        find_cuda(options.compiler),
        find_host(options.host, options.headers),
        architecture(options.arch),
        entries=options.entry,
        places=PLACES if options.sanitize else None,
    )
    return with_resources(options.arch, kernels, "bytes spilled")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="compile gate of HIP kernels for NVIDIA")
    parser.add_argument("--compiler", required=True, metavar="nvcc:DIR")
    parser.add_argument("--host", required=True, metavar="zig:DIR|cxx:PATH")
    parser.add_argument("--headers", type=Path, metavar="DIR")
    parser.add_argument("--arch", required=True, metavar="sm_NN")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--entry", action="append", default=[], metavar="NAME")
    parser.add_argument(
        "--sanitize", action="store_true", help="name lines; writes out/kernel.places.json too"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
