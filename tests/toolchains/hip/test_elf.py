"""Reading symbols, and stubs that a linker believes."""

from __future__ import annotations

import ctypes
import ctypes.util
from pathlib import Path

from compiler import Link
from compilers import ZigCompiler
from elf import Machine, read_symbols
from stubs import stub_library
from symbols import LIBC, LIBM, version

from tests.toolchains.hip.support import ZIG


def test_symbols_of_a_stub() -> None:
    image = stub_library(Machine.X86_64, "libx.so", {"b": "V_1", "a": "", "c": "V_2"})
    assert [(s.name, s.defined, s.function) for s in read_symbols(image)] == [
        ("a", True, True),
        ("b", True, True),
        ("c", True, True),
    ]


def test_symbols_of_an_object(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(
        "int wanted(); int data; static int kept() { return data; }\n"
        'extern "C" int given() { return wanted() + kept(); }\n'
        '__attribute__((visibility("hidden"))) int hidden() { return 1; }\n'
    )
    compiler = ZigCompiler(ZIG, Machine.X86_64)
    assert compiler.compile("a.cpp", "a.o", ["-O0"], tmp_path).returncode == 0
    symbols = {s.name: s for s in read_symbols((tmp_path / "a.o").read_bytes())}
    assert set(symbols) == {"_Z6wantedv", "data", "given"}
    assert not symbols["_Z6wantedv"].defined
    assert symbols["given"].function
    assert not symbols["data"].function


def test_every_allowed_symbol_exists_with_its_version(tmp_path: Path) -> None:
    """A library that wants all of them loads on this machine's C library."""
    names = sorted(LIBM | LIBC)
    machine = Machine.X86_64 if ctypes.sizeof(ctypes.c_void_p) == 8 else Machine.AARCH64
    table = "\n".join(f"  .quad {name}" for name in names)
    (tmp_path / "all.S").write_text(f".data\n{table}\n")
    compiler = ZigCompiler(ZIG, machine)
    assert compiler.compile("all.S", "all.o", (), tmp_path).returncode == 0
    done = compiler.link_library(Link(["all.o"], "all.so", names), tmp_path)
    assert done.returncode == 0, done.messages
    ctypes.CDLL(str(tmp_path / "all.so"))
    assert version("expf", machine) == "GLIBC_2.27"
