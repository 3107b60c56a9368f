"""The compile gate of a kernel whose accesses are counted.

    python counted_kernel.py --source SRC.hip --wave 64 --compiler zig:DIR

It is the sanitizer's build of a kernel, except that copies of vectors stay whole, and that it tells
of branches and arithmetic. Writes
``out/verdict.json`` and, on PASS, ``out/kernel.so`` with ``out/kernel.places.json``. Exits 0 for
any verdict, 2 for bad usage, 3 when the tool chain failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[2] / part) for part in ("common", "host")]
sys.path += [str(Path(__file__).resolve().parents[2] / part) for part in ("driver", "cpu/driver")]

from arithmetic import told_arithmetic
from branches import told_branches
from compile_gate import LIBRARY, OUT, PLACES, Compiled, judge, leave
from compiler import host_machine
from compilers import ZigCompiler, compiler_choice
from sanitized import Edits, build_sanitized
from whole_copies import whole_copies


def main(arguments: Sequence[str]) -> int:
    """Compile one kernel and write the verdict."""
    options = _parser().parse_args(arguments)
    return judge(options.source, lambda source: _build(options, source), (LIBRARY, PLACES))


def _build(options: argparse.Namespace, source: Path) -> Compiled:
    OUT.mkdir(exist_ok=True)
    compiler = ZigCompiler(Path(options.compiler.partition(":")[2]), host_machine())
    edits = Edits(whole_copies, lambda code: told_branches(told_arithmetic(code)))
    build_sanitized(source, LIBRARY, PLACES, compiler, wave_size=options.wave, edits=edits)
    return Compiled(f"{LIBRARY.stat().st_size} bytes", {})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="compile a HIP kernel whose accesses are counted")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--wave", type=int, choices=(32, 64), default=64, help="lanes of a wave")
    parser.add_argument(
        "--compiler", type=compiler_choice("zig:DIR"), required=True, metavar="zig:DIR"
    )
    return parser


if __name__ == "__main__":
    leave(main(sys.argv[1:]))
