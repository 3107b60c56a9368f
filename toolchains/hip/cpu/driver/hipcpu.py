"""Compile HIP for the host's CPU.

Exit codes: 0 done; 1 the source is wrong (why is on stderr, with places in the original source);
2 usage; 3 the tool chain failed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "common"))

from builds import build_kernel, build_program, build_runtime
from compilers import find_compiler
from faults import SourceFault, ToolchainFault
from sanitized import build_sanitized


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        _build(options)
    except SourceFault as fault:
        print(fault, file=sys.stderr)
        return 1
    except (ToolchainFault, OSError) as fault:
        print(f"hipcpu: {fault}", file=sys.stderr)
        return 3
    return 0


def _build(options: argparse.Namespace) -> None:
    compiler = find_compiler(options.compiler)
    if options.command == "kernel" and options.sanitize:
        places = options.output.with_suffix(".places.json")
        build_sanitized(options.source, options.output, places, compiler, wave_size=options.wave)
    elif options.command == "kernel":
        build_kernel(
            options.source,
            options.output,
            compiler,
            wave_size=options.wave,
            include=options.include,
            entries=options.entry,
        )
    elif options.command == "runtime":
        build_runtime(options.output, compiler, sanitize=options.sanitize)
    else:
        build_program(options.source, options.output, compiler)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="hipcpu.py", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    kernel = commands.add_parser("kernel", help="a HIP source to a shared library")
    kernel.add_argument("source", type=Path, metavar="SRC")
    kernel.add_argument("--wave", type=int, choices=(32, 64), default=64, help="lanes of a wave")
    kernel.add_argument("--include", type=Path, action="append", default=[], metavar="DIR")
    kernel.add_argument(
        "--entry", action="append", default=[], metavar="NAME", help="a required function"
    )
    runtime = commands.add_parser("runtime", help="the runtime, libhipcpu.so")
    program = commands.add_parser("program", help="C++ sources, or directories, to a program")
    program.add_argument("source", type=Path, nargs="+", metavar="SRC")
    for command in (kernel, runtime):
        command.add_argument(
            "--sanitize",
            action="store_true",
            help="find faults of memory and barriers; a kernel also gets OUT.places.json",
        )
    for command in (kernel, runtime, program):
        command.add_argument("-o", dest="output", type=Path, required=True, metavar="OUT")
        command.add_argument(
            "--compiler",
            type=_compiler,
            required=True,
            metavar="zig:DIR|cxx:PATH",
            help="an installed ziglang package, or a g++ or clang++",
        )
    return parser


def _compiler(text: str) -> str:
    kind, _, path = text.partition(":")
    if kind not in {"zig", "cxx"} or not path:
        raise argparse.ArgumentTypeError("expected zig:DIR or cxx:PATH")
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
