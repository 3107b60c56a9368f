"""The compile gate of HIP kernels on the CPU.

    python tools/compile_gate.py --compiler=zig:DIR --wave=64 --source=candidate/softmax.hip \
        --entry=softmax_f32 --entry=softmax_f16

Writes ``out/verdict.json`` and, on PASS, ``out/kernel.so``; with ``--sanitize`` an instrumented
one, and ``out/kernel.places.json``. Exits 0 for any verdict, 3 when the
tool chain failed, which says nothing about the kernel. Standard library only; the kernel is
compiled, never run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "hip" / "common"))
sys.path.insert(0, str(Path(__file__).parents[1] / "hip" / "cpu" / "driver"))

from builds import build_kernel
from compile_verdict import LIBRARY, OUT, PLACES, Compiled, judge
from compilers import find_compiler
from sanitized import build_sanitized


def main(arguments: Sequence[str]) -> int:
    """Compile one kernel and write the verdict."""
    options = _parser().parse_args(arguments)
    made = (LIBRARY, PLACES) if options.sanitize else ()  # which is read beside the verdict
    return judge(options.source, lambda: _build(options), made)


def _build(options: argparse.Namespace) -> Compiled:
    compiler = find_compiler(options.compiler)
    if options.sanitize:
        OUT.mkdir(exist_ok=True)
        build_sanitized(options.source, LIBRARY, PLACES, compiler, wave_size=options.wave)
    else:
        build_kernel(
            options.source,
            LIBRARY,
            compiler,
            wave_size=options.wave,
            include=[],
            entries=options.entry,
        )
    return Compiled(f"{LIBRARY.stat().st_size} bytes", {})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="compile gate of HIP kernels on the CPU")
    parser.add_argument("--compiler", required=True, metavar="zig:DIR|cxx:PATH")
    parser.add_argument("--wave", type=int, choices=(32, 64), required=True)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--entry", action="append", default=[], metavar="NAME")
    parser.add_argument(
        "--sanitize", action="store_true", help="instrument it; writes out/kernel.places.json too"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
