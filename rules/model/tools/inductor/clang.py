"""``clang.py DIR ARGUMENTS…``: what Inductor calls as its C++ compiler, clang of a ziglang package.

It reads no header or library of the machine. The C++ library is not linked: Inductor's kernels are
C but for the sentences of their errors, so what they want of it ends the process where it is
reached. Exceptions and memory are those of the C++ library that PyTorch has loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).absolute().parents[2] / "hip/host"))
sys.path.append(str(Path(__file__).absolute().parents[2] / "hip/common"))

from compiler import Completed, Link, host_machine, run_tool
from compilers import LIBRARIES, ZigCompiler
from elf import Symbol, read_symbols
from faults import ToolchainFault
from stubs import stub_library
from symbols import LIBC, LIBM

_DEFINES = (
    *("LOCALIZATION", "WIDE_CHARACTERS", "UNICODE", "THREADS", "THREAD_API_PTHREAD"),
    *("MONOTONIC_CLOCK", "TERMINAL", "FILESYSTEM", "RANDOM_DEVICE"),
)
_NOT = ("TIME_ZONE_DATABASE", "VENDOR_AVAILABILITY_ANNOTATIONS")
_LOADED = ("libstdc++.so.6", "libgcc_s.so.1", "libc10.so", "libtorch_cpu.so")
_OWN = "St3__1"
"""What the names of the package's C++ library have and those of PyTorch's have not."""
_WITHOUT = ("-fopenmp", "-l", "-L")


def main(arguments: Sequence[str]) -> int:
    """Run one command of Inductor's, and return its exit code."""
    home, given = Path(arguments[0]), list(arguments[1:])
    if set(given) & {"--version", "-v"}:
        print("clang version 0 (ziglang)")
        return 0
    try:
        return _run(home, [word for word in given if not word.startswith(_WITHOUT)])
    except (ToolchainFault, OSError) as fault:
        print(fault, file=sys.stderr)
        return 3


def _run(home: Path, words: list[str]) -> int:
    compiler = ZigCompiler(home, host_machine())
    library = [word.replace(LIBRARIES, f"{home}/lib") for word in compiler.library_options()]
    defines = [f"-D_LIBCPP_HAS_{name}=1" for name in _DEFINES]
    defines += [f"-D_LIBCPP_HAS_{name}=0" for name in _NOT]
    headers = f"-I{Path(__file__).absolute().parent / 'include'}"
    command = [*compiler.clang, "-w", *defines, *library, headers]
    cwd = Path.cwd()
    if "-shared" not in words:
        return _told(run_tool([*command, *words], cwd))
    words.remove("-shared")
    at = words.index("-o")
    output = Path(words[at + 1])
    build = output.with_name(f"{output.name}.build")
    build.mkdir(exist_ok=True)
    words[at : at + 2] = ["-c", "-o", str(build / "kernel.o")]
    code = _told(run_tool([*command, *words], cwd))
    return code or _link(compiler, build, output)


def _link(compiler: ZigCompiler, build: Path, output: Path) -> int:
    """Make a library of ``kernel.o``, for a process that has loaded PyTorch."""
    symbols = read_symbols((build / "kernel.o").read_bytes())
    absent = sorted({s.name for s in symbols if not s.defined and _OWN in s.name})
    traps = [f'extern "C" void {name}() {{ __builtin_trap(); }}\n' for name in absent]
    (build / "absent.cpp").write_text("".join(traps))
    code = _told(compiler.compile("absent.cpp", "absent.o", ("-O1",), build))
    if code:
        return code
    for name in _LOADED:
        (build / name).write_bytes(stub_library(compiler.machine, name, {}))
    link = Link(
        ("kernel.o", "absent.o", *_LOADED),
        str(output),
        sorted({s.name for s in symbols if not s.defined and _of_c(s, compiler)}),
        sorted({s.name for s in symbols if s.defined and _OWN not in s.name}),
    )
    return _told(compiler.link_library(link, build))


def _of_c(symbol: Symbol, compiler: ZigCompiler) -> bool:
    return symbol.name in LIBM | LIBC | compiler.own_symbols


def _told(done: Completed) -> int:
    if done.returncode:
        print(done.messages, file=sys.stderr)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
