"""A ROCm of the machine: its clang is zig's here, in an installation's place, without headers."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.toolchains.hip_rocm.support import ZIG, RocmDriver

pytestmark = pytest.mark.skipif(not shutil.which("g++"), reason="no g++ here to link with")

CLANG = """\
#!/bin/sh
case " $* " in
  *" -x hip "*) exec {zig} clang -nogpuinc -nogpulib "$@" ;;
  *" -c "*) exec {zig} clang "$@" ;;
  *) exec g++ "$@" ;;
esac
"""
SOURCE = """\
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define STR_(x) #x
#define STR(x) STR_(x)
struct dim3 { unsigned x, y, z; };
extern "C" int hipLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);
__attribute__((global)) void fill(float* y, int value) {
  y[__builtin_amdgcn_workitem_id_x()] = value;
}
"""
LOOKS = """\
#if CAT(__has_,include)("@@") || CAT(CAT(__has, _inc), lude)(<@@>)
extern "C" int finds() { return 1; }
#endif
#define QUESTION CAT(__has_, include)("@@")
#if QUESTION
extern "C" int finds_by_a_name() { return 1; }
#endif
extern "C" const char* when() { return CAT(__TI,ME__) CAT(__DA,TE__) CAT(__TIMES,TAMP__); }
extern "C" const char* where() { return CAT(__FI,LE__); }
"""
HONEST = """\
#if __has_include("own.h") && __has_include(<own.h>) && !__has_include("none.h")
#include "own.h"
extern "C" int sums(int x) { return x + OWN; }
#endif
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> RocmDriver:
    root = tmp_path_factory.mktemp("rocm")
    tools = root / "llvm/bin"
    tools.mkdir(parents=True)
    (root / "include").mkdir()
    for name, text in (
        ("clang++", CLANG.format(zig=ZIG / "zig")),
        ("ld.lld", f'#!/bin/sh\nexec {ZIG / "zig"} ld.lld "$@"\n'),
    ):
        (tools / name).write_text(text)
        (tools / name).chmod(0o755)
    return RocmDriver(f"rocm:{root}")


def built(driver: RocmDriver, directory: Path, text: str, *options: str) -> bytes:
    directory.mkdir(exist_ok=True)
    source = directory / "kernel.hip"
    source.write_text(SOURCE + text)
    driver.build(source, directory / "kernel.so", "gfx942", *options)
    return (directory / "kernel.so").read_bytes()


def test_nothing_of_the_machine_gets_into_a_library(
    driver: RocmDriver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    present, absent = tmp_path / "file", tmp_path / "none"
    present.write_text("1")

    here = built(driver, tmp_path / "a", LOOKS.replace("@@", str(present)))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    os.utime(present, (2e9, 2e9))
    there = built(driver, tmp_path / "another place", LOOKS.replace("@@", str(absent)))

    assert here == there
    assert b"finds" not in here


def test_a_tasks_own_headers_are_there(driver: RocmDriver, tmp_path: Path) -> None:
    (tmp_path / "own.h").write_text("#define OWN 7\n")

    built(driver, tmp_path, HONEST, "--entry=sums")


@pytest.mark.parametrize(
    "text",
    [
        'CAT(a,sm)(".incbin \\"@@\\"");',
        'extern "C" int f() { CAT(__as,m__)("nop"); return 1; }',
        '_Pragma(STR(GCC dependency "@@"))',
        'CAT(_Pra,gma)("GCC dependency \\"@@\\"")',
        "#include STR(@@)",
    ],
)
def test_what_would_read_a_file_is_refused(driver: RocmDriver, tmp_path: Path, text: str) -> None:
    file = tmp_path / "file"
    file.write_text("1")
    source = tmp_path / "kernel.hip"
    source.write_text(SOURCE + text.replace("@@", str(file)))

    assert f"{source}:" in driver.refuse(source, "gfx942")
