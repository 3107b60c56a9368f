"""Native programs and libraries for the host, without the C++ library.

    python native.py program SRC... -o EXE --compiler zig:DIR
    python native.py front SRC... -o LIBRARY --before NAME --compiler zig:DIR

The sources are trusted. Exit codes: 0 done; 1 a source is wrong; 2 usage; 3 the tool chain failed.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "common"))

from compiler import Compiler, Completed, Link
from compilers import compiler_choice, find_compiler
from elf import Symbol, read_symbols
from faults import SourceFault, ToolchainFault
from kernel_library import mangled, publish, require_tool, undefined, workplace

_OUTPUT = "output"
_COMPILERS = ("zig:DIR", "cxx:PATH")


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        compiler = find_compiler(options.compiler)
        if options.command == "front":
            build_front(options.source, options.output, compiler, options.before)
        else:
            build_program(options.source, options.output, compiler)
    except SourceFault as fault:
        print(fault, file=sys.stderr)
        return 1
    except (ToolchainFault, OSError) as fault:
        print(f"native: {fault}", file=sys.stderr)
        return 3
    return 0


def build_program(sources: Sequence[Path], output: Path, compiler: Compiler) -> None:
    """Compile C++ files, or all of a directory, into a program without the C++ library.

    The sources are trusted: whatever they want of the C library is looked up when they start.
    """
    files = [file for source in sources for file in _program_files(source)]
    if not files:
        raise SourceFault(f"no .cpp file in {', '.join(map(str, sources))}")
    with workplace() as directory:
        objects = compile_all(files, compiler, [], directory)
        imports = undefined(merge(objects, directory))
        missing = [name for name in imports if mangled(name)]
        if missing:
            raise SourceFault(f"error: undefined symbol '{missing[0]}'")
        link = Link(objects, _OUTPUT, imports)
        require_tool(compiler.link_program(link, directory), "link the program")
        publish(directory / _OUTPUT, output)
        output.chmod(0o755)


def build_front(sources: Sequence[Path], output: Path, compiler: Compiler, before: str) -> None:
    """Compile C++ files into a library that wraps another one.

    It has the other's name, the output's. Its own C functions are found first, and all others in
    ``before``, which the loader looks for in the library's directory. The sources are trusted.
    """
    files = [file for source in sources for file in _program_files(source)]
    with workplace() as directory:
        objects = compile_all(files, compiler, [], directory)
        symbols = merge(objects, directory)
        exports = [s.name for s in symbols if s.defined and s.function and not mangled(s.name)]
        imports = undefined(symbols)
        link = Link(objects, _OUTPUT, imports, exports, soname=output.name, before=before)
        require_tool(compiler.link_library(link, directory), "link the library")
        publish(directory / _OUTPUT, output)


def _program_files(source: Path) -> list[Path]:
    return sorted(source.glob("*.cpp")) if source.is_dir() else [source]


def compile_all(
    files: Sequence[Path], compiler: Compiler, options: Sequence[str], directory: Path
) -> list[str]:
    """Compile the files at the same time; the names of their objects, in the same order."""

    def build(number: int, file: Path) -> Completed:
        own = [*options, "-O2", "-fno-rtti", f"-ffile-prefix-map={file.parent.absolute()}=."]
        return compiler.compile(str(file.absolute()), f"{number}.o", own, directory)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(build, range(len(files)), files))
    failures = [run.messages for run in runs if run.returncode]
    if failures:
        raise SourceFault("\n".join(failures))
    return [f"{number}.o" for number in range(len(files))]


def merge(objects: Sequence[str], directory: Path) -> list[Symbol]:
    """The symbols of several objects as one: what one of them defines, no other lacks."""
    symbols: dict[str, Symbol] = {}
    for name in objects:
        for symbol in read_symbols((directory / name).read_bytes()):
            if symbol.defined or symbol.name not in symbols:
                symbols[symbol.name] = symbol
    return [symbols[name] for name in sorted(symbols)]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="native.py", description="native programs and libraries for the host"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    program = commands.add_parser("program", help="C++ sources, or directories, to a program")
    front = commands.add_parser("front", help="C++ sources to a library that stands before another")
    front.add_argument(
        "--before", required=True, metavar="NAME", help="the other one's name, beside this one"
    )
    for command in (program, front):
        command.add_argument("source", type=Path, nargs="+", metavar="SRC")
        command.add_argument("-o", dest="output", type=Path, required=True, metavar="OUT")
        command.add_argument(
            "--compiler",
            type=compiler_choice(*_COMPILERS),
            required=True,
            metavar="|".join(_COMPILERS),
            help="an installed ziglang package, or a g++ or clang++",
        )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
