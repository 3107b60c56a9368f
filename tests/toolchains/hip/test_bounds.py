"""Sources that no compiler or linker ends with are refused; tools that others end blame nobody."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.toolchains.hip.support import HIP, ZIG, Driver

TEMPLATES = """\
template <int N, int M> struct Two {
  static constexpr long value = Two<N - 1, M>::value + Two<N - 1, M + (1 << N)>::value;
};
template <int M> struct Two<0, M> { static constexpr long value = M; };
extern "C" long run() { return Two<28, 0>::value; }
"""
NUMBERS = """\
#define A(x) x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x
#define B(x) A(A(A(A(A(A(A(x)))))))
extern "C" int run(int i) { int a[] = { B(1) }; return a[i]; }
"""
LARGE = "char large[1 << 20] = {1};\n"
BUILD = """\
import resource, sys
from pathlib import Path
sys.path[:0] = {path!r}
from bounds import Bounds
from cpu_builds import build_kernel
from compilers import find_compiler
from faults import SourceFault
before = resource.getrlimit(resource.RLIMIT_CPU), resource.getrlimit(resource.RLIMIT_AS)
bounds = Bounds(cpu_seconds={seconds}, memory_bytes={megabytes} << 20,
                file_bytes=1 << 20)
try:
    build_kernel(Path({source!r}), Path("k.so"), find_compiler({compiler!r}), wave_size=64,
                 bounds=bounds)
except SourceFault as fault:
    print(fault)
after = resource.getrlimit(resource.RLIMIT_CPU), resource.getrlimit(resource.RLIMIT_AS)
assert after == before
"""


@pytest.mark.parametrize(
    ("text", "seconds", "megabytes", "why"),
    [
        (TEMPLATES, 1, 3072, "the compiler has not ended after 1 s of processor time"),
        (LARGE, 60, 3072, "the compiler makes a file of more than 1 MiB of it"),
        (NUMBERS, 60, 300, "it needed more than 300 MiB, or crashed"),
        ('extern "C" int run() { return 0; }\n', 10, 300, ""),
    ],
)
def test_what_a_source_may_take(
    driver: Driver, tmp_path: Path, text: str, seconds: int, megabytes: int, why: str
) -> None:
    source = tmp_path / "k.hip"
    source.write_text(text)
    code = BUILD.format(
        path=[str(HIP / part) for part in ("common", "host", "cpu/driver")],
        seconds=seconds,
        megabytes=megabytes,
        source=str(source),
        compiler=driver.compiler,
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    if why:
        assert done.stdout.startswith(f"{source}:1:1: error: ")
        assert why in done.stdout
    else:
        assert done.stdout == ""
        assert (tmp_path / "k.so").exists()


@pytest.mark.parametrize(
    ("signal", "code", "message"),
    [
        ("KILL", 3, "died of signal 9"),
        ("TERM", 3, "died of signal 15"),
        ("SEGV", 1, "error: the compiler died (signal 11)"),
        ("XCPU", 1, "error: the compiler has not ended after 60 s of processor time"),
    ],
)
def test_who_is_to_blame_for_a_compiler_s_death(
    tmp_path: Path, signal: str, code: int, message: str
) -> None:
    compiler = tmp_path / "dies"
    compiler.write_text(f"#!/bin/sh\nkill -{signal} $$\n")
    compiler.chmod(0o755)
    source = tmp_path / "k.hip"
    source.write_text("int a;\n")
    done = Driver(f"cxx:{compiler}").run("kernel", source, "-o", tmp_path / "k.so")
    assert done.returncode == code, done.stderr
    assert message in done.stderr


UNLINKABLE = '__attribute__((section(".eh_frame"), used)) char text[] = "no frame at all";\n'
RESERVED = 'extern "C" { int _GLOBAL_OFFSET_TABLE_[4] = {1}; }\n'


@pytest.mark.parametrize("text", [UNLINKABLE, RESERVED], ids=["section", "name"])
def test_what_cannot_be_linked_is_the_source_s_fault(
    driver: Driver, tmp_path: Path, text: str
) -> None:
    source = tmp_path / "k.hip"
    source.write_text(text)

    assert f"{source}:1:1: error: the linker rejects it\nld.lld: error: " in driver.refuse(source)


def test_a_linker_that_cannot_link_anything_is_not(tmp_path: Path) -> None:
    compiler = tmp_path / "compiles_only"
    real = f"{ZIG}/zig clang"
    compiler.write_text(f'#!/bin/sh\ncase "$*" in *-shared*) exit 1;; esac\nexec {real} "$@"\n')
    compiler.chmod(0o755)
    source = tmp_path / "k.hip"
    source.write_text('extern "C" int run() { return 0; }\n')

    done = Driver(f"cxx:{compiler}").run("kernel", source, "-o", tmp_path / "k.so")

    assert done.returncode == 3, done.stderr
    assert "cannot link nothing" in done.stderr


def test_names_that_the_linker_cannot_read_stay_inside(driver: Driver, tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    source.write_text('extern "C" int größe() { return 1; }\nextern "C" int run() { return 0; }\n')

    driver.build("kernel", source, "-o", tmp_path / "k.so", "--entry", "run")

    assert "größe".encode() not in (tmp_path / "k.so").read_bytes()
