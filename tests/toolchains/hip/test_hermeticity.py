"""A library depends on its source and the toolchain: not on the time, the place, or other files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from preprocessed import refused_directive

from tests.toolchains.hip.support import ZIG, Driver

COMPILERS = [
    f"zig:{ZIG}",
    pytest.param(
        "cxx:g++", marks=pytest.mark.skipif(not shutil.which("g++"), reason="no g++ here")
    ),
]
MACROS = """\
#include <hip/hip_runtime.h>
#define CAT_(a, b) a##b
#define CAT(a, b) CAT_(a, b)
#define STR_(x) #x
#define STR(x) STR_(x)
"""
LOOKS = """\
#if CAT(__has_,include)("@@") || CAT(CAT(__has, _inc), lude)(<@@>)
extern "C" int finds() { return 1; }
#endif
#define QUESTION CAT(__has_, include)("@@")
#if QUESTION
extern "C" int finds_by_a_name() { return 1; }
#endif
#ifdef __has_embed
#if CAT(__has_,embed)("@@")
extern "C" int embeds() { return 1; }
#endif
#endif
#define _FORTIFY_SOURCE CAT(__has_, include)("@@")
#include <string.h>
extern "C" const char* when() { return CAT(__TI,ME__) CAT(__DA,TE__) CAT(__TIMES,TAMP__); }
extern "C" const char* where() { return CAT(__FI,LE__); }
extern "C" const char* here(const char* file = __builtin_FILE()) { return file; }
"""
HONEST = """\
#include <stdio.h>
#define UNROLL(n) _Pragma(STR(unroll n))
#if __has_include(<cmath>) && __has_include("hip/hip_fp16.h") && !__has_include(<no/such.h>)
extern "C" int sums(int x) {
  UNROLL(4)
  for (int i = 0; i < 8; ++i) x += i;
  return x + printf("%s", ".incbin \\"x\\" .macro");
}
#endif
"""
OWN = """\
#if __has_include(<own.h>) && __has_include("own.h") && !__has_include("other.h")
#include <own.h>
extern "C" int owns() { return OWN; }
#elif __has_include(<cmath>)
#error "own.h is an input"
#endif
"""


@pytest.fixture(params=COMPILERS)
def compiler(request: pytest.FixtureRequest) -> Driver:
    return Driver(request.param)


def built(driver: Driver, directory: Path, text: str, *options: str) -> bytes:
    directory.mkdir()
    source = directory / "kernel.hip"
    source.write_text(MACROS + text)
    driver.build("kernel", source, "-o", directory / "kernel.so", *options)
    return (directory / "kernel.so").read_bytes()


def test_nothing_of_the_machine_gets_into_a_library(
    compiler: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    present, absent = tmp_path / "file", tmp_path / "none"
    present.write_text("1")

    here = built(compiler, tmp_path / "a", LOOKS.replace("@@", str(present)))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("CPATH", str(tmp_path))
    os.utime(present, (2e9, 2e9))
    there = built(compiler, tmp_path / "another place", LOOKS.replace("@@", str(absent)))

    assert here == there


def test_no_library_is_looked_for_that_a_pragma_names(tmp_path: Path) -> None:
    """A linker would take it from the machine, and fail where there is none."""
    library = tmp_path / "libother.so"
    shutil.copy(Path("/proc/self/exe").resolve(), library)
    text = 'CAT(_Pra,gma)("comment(lib, \\"@@\\")")\nextern "C" int one() { return 1; }'
    zig = Driver(f"zig:{ZIG}")

    here = built(zig, tmp_path / "a", text.replace("@@", str(library)))
    there = built(zig, tmp_path / "b", text.replace("@@", str(tmp_path / "none.so")))

    assert here == there


def test_honest_macros_are_obeyed(compiler: Driver, tmp_path: Path) -> None:
    assert b"sums" in built(compiler, tmp_path / "a", HONEST, "--entry", "sums")


def test_a_tasks_own_headers_are_there(compiler: Driver, tmp_path: Path) -> None:
    """Under the names by which they are included, though the compiler has others for them."""
    (tmp_path / "more").mkdir()
    (tmp_path / "more/own.h").write_text("#define OWN 7\n")

    assert b"owns" in built(
        compiler, tmp_path / "a", OWN, "--entry", "owns", "--include", str(tmp_path / "more")
    )


@pytest.mark.parametrize(
    "text",
    [
        'CAT(a,sm)(".incbin \\"@@\\"");',
        'extern "C" int f() { CAT(__as,m__)("nop"); return 1; }',
        'CAT(a,sm)(STR(.inc) STR(bin "@@"));',
        '_Pragma(STR(GCC dependency "@@"))',
        'CAT(_Pra,gma)("GCC dependency \\"@@\\"")',
        '#define HASH #\nHASH include "@@"',
        "#include STR(@@)",
        '#embed "@@"',
        '#import "@@"',
    ],
)
def test_what_would_read_a_file_is_refused(compiler: Driver, tmp_path: Path, text: str) -> None:
    file = tmp_path / "file"
    file.write_text("1")
    source = tmp_path / "kernel.hip"
    source.write_text(MACROS + text.replace("@@", str(file)))

    assert f"{source}:" in compiler.refuse(source)


@pytest.mark.skipif(not shutil.which("g++"), reason="no g++ here")
@pytest.mark.parametrize(
    "text",
    [
        'int x __attribute__((section(".data\\n.incbin \\"/etc/hosts\\"\\n#"))) = 1;',
        'extern int x CAT(a,sm)("y\\n.include \\"/etc/hosts\\"\\n#"); int x = 1;',
    ],
)
def test_a_name_is_no_directive_of_the_assembler(tmp_path: Path, text: str) -> None:
    """A compiler that writes names as they are, before an assembler reads them."""
    source = tmp_path / "kernel.hip"
    source.write_text(MACROS + text)

    assert "a directive of the assembler" in Driver("cxx:g++").refuse(source)


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        (' # include "x"', True),
        ("%:include <x>", True),
        ("#pragma GCC dependency x", True),
        ("#pragma unroll 4", False),
        ('hip_pragma("GCC poison x")', True),
        ('x; hip_pragma("unroll 4") hip_pragma("omp simd")', False),
        ("a # b", False),
    ],
)
def test_what_macros_made_is_looked_at(tmp_path: Path, line: str, *, refused: bool) -> None:
    text = f'# 1 "/usr/include/x.h"\n#pragma GCC system_header\n# 7 "kernel.hip" 2\n{line}\n'
    found = refused_directive(text, tmp_path)

    assert found.startswith("kernel.hip:7:1: error: a macro expands to") if refused else not found
