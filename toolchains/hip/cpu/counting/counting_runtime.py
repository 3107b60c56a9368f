"""Builds the runtime of HIP on the CPU with counters that hear of each access.

    python counting_runtime.py -o libhipcpu.so --compiler zig:DIR

Exit codes: 0 done; 2 usage; 3 the tool chain, or a source of the runtime, is wrong.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path += [str(Path(__file__).resolve().parents[2] / part) for part in ("common", "host")]
sys.path += [str(Path(__file__).resolve().parents[2] / part) for part in ("driver", "cpu/driver")]

from compiler import Link, host_machine
from compilers import ZigCompiler, compiler_choice
from cpu_builds import INCLUDE_OPTIONS, OUTPUT, RUNTIME, SWITCH
from faults import SourceFault, ToolchainFault
from instrumentation import BUFFERS, CALLS
from kernel_library import publish, require_tool, undefined, workplace
from native import compile_all, merge

_HERE = Path(__file__).resolve().parent
_CPU = _HERE.parent
_OF_SANITIZER = ("findings.cpp", "regions.cpp")
"""Where instructions stand, and which memory there is."""
_FAILED = 3


def main(arguments: Sequence[str]) -> int:
    """Build it and return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        directory = Path(options.compiler.partition(":")[2])
        build_counting_runtime(options.output, ZigCompiler(directory, host_machine()))
    except (SourceFault, ToolchainFault, OSError) as fault:
        print(f"counting: {fault}", file=sys.stderr)
        return _FAILED
    return 0


def build_counting_runtime(output: Path, compiler: ZigCompiler) -> None:
    """Compile it. Raises SourceFault and ToolchainFault."""
    files = [path for path in (_CPU / "runtime").iterdir() if path.suffix in {".cpp", ".S"}]
    files += [*_HERE.glob("*.cpp"), *(_CPU / "sanitizer" / name for name in _OF_SANITIZER)]
    with workplace() as directory:
        options = [*INCLUDE_OPTIONS, "-DHIPCPU_OBSERVED"]
        objects = compile_all(sorted(files), compiler, options, directory)
        symbols = merge(objects, directory)
        offered = RUNTIME | SWITCH | CALLS | {BUFFERS}
        exports = [s.name for s in symbols if s.defined and s.name in offered]
        link = Link(objects, OUTPUT, undefined(symbols), exports, soname="libhipcpu.so")
        require_tool(compiler.link_library(link, directory), "link the runtime")
        publish(directory / OUTPUT, output)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="build the runtime that counts accesses")
    parser.add_argument("-o", dest="output", type=Path, required=True, metavar="LIBRARY")
    parser.add_argument(
        "--compiler", type=compiler_choice("zig:DIR"), required=True, metavar="zig:DIR"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
