"""The command: determinism, messages, exit codes, the libraries and programs that it makes."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.toolchains.hip.support import Driver

KERNEL = """\
#include <hip/hip_runtime.h>

// Adds one.
template <typename T>
__global__ void add(T* data, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;  /* index */
  T moved = __shfl_xor(data[i % n], 1);

  if (i < n) data[i] = moved + 1;
}
extern "C" hipError_t run(float* data, int n) {
  add<<<dim3((n + 63) / 64), dim3(64)>>>(data, n);
  return hipGetLastError();
}
"""


def compiled(
    driver: Driver, directory: Path, text: str, name: str = "kernel.hip", *options: str
) -> bytes:
    directory.mkdir(exist_ok=True)
    source = directory / name
    source.write_text(text)
    driver.build("kernel", source, "-o", directory / "out.so", *options)
    return (directory / "out.so").read_bytes()


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plain")


@pytest.fixture(scope="module")
def plain(driver: Driver, directory: Path) -> bytes:
    """``KERNEL``, compiled in ``directory``."""
    return compiled(driver, directory, KERNEL)


def test_same_bytes_everywhere(
    driver: Driver, tmp_path: Path, plain: bytes, directory: Path
) -> None:
    assert compiled(driver, tmp_path / "b", KERNEL, "renamed.hip") == plain
    for path in (tmp_path, directory):
        assert str(path).encode() not in plain
    assert b"/zig" not in plain


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("// Adds one.", "// Adds\n// one\n// to each.\n\n"),
        ("/* index */", ""),
        ("\n\n", "\n"),
        ("\n", "\r\n"),
        ("\n", "  \n"),
        ("  return", "\t\t/* at\n last */ return"),
        (") / 64), dim3", ")\n\n/ 64),\n   dim3"),
        ("moved + 1", "moved \\\n + 1"),
    ],
)
def test_layout_and_comments_do_not_change_the_bytes(
    driver: Driver, tmp_path: Path, plain: bytes, old: str, new: str
) -> None:
    assert old in KERNEL
    assert compiled(driver, tmp_path / "b", KERNEL.replace(old, new)) == plain


@pytest.mark.parametrize(
    ("old", "new"),
    [("moved + 1", "moved + 2"), ("__shfl_xor", "__shfl_up"), ('"C" ', '"C" inline ')],
)
def test_another_meaning_gives_other_bytes(
    driver: Driver, tmp_path: Path, plain: bytes, old: str, new: str
) -> None:
    assert compiled(driver, tmp_path / "b", KERNEL.replace(old, new)) != plain


def test_wave_size_is_in_the_bytes(driver: Driver, tmp_path: Path, plain: bytes) -> None:
    assert compiled(driver, tmp_path / "a", KERNEL, "kernel.hip", "--wave", "32") != plain


def test_edit_of_a_header_s_comment(driver: Driver, tmp_path: Path) -> None:
    source = '#include "one.h"\nextern "C" int f() { return ONE; }\n'
    results = []
    for name, header in (("a", "#define ONE 1\n"), ("b", "// one\n#define ONE 1 // yes\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "one.h").write_text(header)
        results.append(compiled(driver, tmp_path / name, source))
    assert results[0] == results[1]


def test_include_directory(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "include" / "deep").mkdir(parents=True)
    (tmp_path / "include" / "deep" / "a.h").write_text('#pragma once\n#include "b.h"\n')
    (tmp_path / "include" / "deep" / "b.h").write_text("#pragma once\n#define VALUE 5\n")
    text = '#include <deep/a.h>\n#include "deep/b.h"\nextern "C" int f() { return VALUE; }\n'
    compiled(driver, tmp_path / "s", text, "k.hip", "--include", str(tmp_path / "include"))
    assert ctypes.CDLL(str(tmp_path / "s" / "out.so")).f() == 5


INCLUDE = "#include <hip/hip_runtime.h>\n"
NARROW_MASK = "  p[0] = __shfl_sync(0xffffffffu, p[0], 0);"
LAUNCH = "void f() { k<<<1, 1>>>(nullptr); }"
LAUNCH_OF_MISSING = "void f() {  k<<<1,   1>>>(   missing); }"
ERRORS = [
    # (source, line, column, part of the message)
    ("int a;\n\n\n/* c\n */ int f() { return b; }\n", 5, 22, "b"),
    ("#include <hip/hip_runtime.h>\n\n\tint x = \\\n   nothing;\n", 4, 4, "nothing"),
    ("\n\n#error stop here\n", 3, 2, "stop here"),
    ("#include <hip/hip_runtime.h>\n\n#include <no/such.h>\n", 3, 10, "no/such.h"),
    (
        f"{INCLUDE}__global__ void k(int) {{}}\n// launch\n{LAUNCH_OF_MISSING}\n",
        4,
        30,
        "missing",
    ),
    (
        f"{INCLUDE}\n__global__ void k(float* p) {{\n{NARROW_MASK}\n}}\n{LAUNCH}\n",
        4,
        10,
        "64-bit integer",
    ),
]


@pytest.mark.parametrize(("text", "line", "column", "part"), ERRORS)
def test_compile_error_at_its_original_place(
    driver: Driver, tmp_path: Path, text: str, line: int, column: int, part: str
) -> None:
    source = tmp_path / "kernel.hip"
    source.write_text(text)
    message = driver.refuse(source)
    first, shown, caret = message.splitlines()[:3]
    assert first.startswith(f"{source}:{line}:{column}: error: "), message
    assert part in first
    assert shown == f"  {text.splitlines()[line - 1]}"
    assert caret.index("^") == column + 1


def test_error_in_a_header_of_the_source(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "helper.h").write_text("\n// here\nint f() { return missing; }\n")
    source = tmp_path / "kernel.hip"
    source.write_text('#include "helper.h"\n')
    assert driver.refuse(source).startswith(f"{tmp_path / 'helper.h'}:3:18: error: ")


def test_missing_entry_lists_what_there_is(driver: Driver, tmp_path: Path) -> None:
    source = tmp_path / "kernel.hip"
    source.write_text('extern "C" int found() { return 0; }\nint other() { return 0; }\n')
    driver.build("kernel", source, "-o", tmp_path / "k.so", "--entry", "found")
    message = driver.refuse(source, "--entry", "absent")
    assert "no function extern \"C\" 'absent'" in message
    assert "functions: found" in message
    assert 'there is one that is not extern "C"' in driver.refuse(source, "--entry", "other")


@pytest.mark.parametrize(
    ("text", "line", "symbol"),
    [
        ('\nvoid nowhere();\nextern "C" void f() { nowhere(); }\n', 2, "_Z7nowherev"),
        ('#include <stdlib.h>\nextern "C" int f() {\n  return system("id");\n}\n', 3, "'system'"),
        (
            '#include <string>\nextern "C" int f(int n) {\n  return std::to_string(n).size();\n}\n',
            3,
            "'std::string'",
        ),
    ],
)
def test_undefined_symbol_is_named(
    driver: Driver, tmp_path: Path, text: str, line: int, symbol: str
) -> None:
    source = tmp_path / "kernel.hip"
    source.write_text(text)
    message = driver.refuse(source)
    assert message.startswith(f"{source}:{line}:"), message
    assert symbol in message


def test_kernel_gets_versioned_mathematics(driver: Driver, tmp_path: Path) -> None:
    """Not the oldest ``expf``, which goes through a wrapper."""
    text = '#include <math.h>\nextern "C" float f(float x) { return expf(x); }\n'
    image = compiled(driver, tmp_path, text)
    assert b"libm.so.6\0" in image
    assert b"GLIBC_2.27\0" in image
    function = ctypes.CDLL(str(tmp_path / "out.so")).f
    function.restype, function.argtypes = ctypes.c_float, [ctypes.c_float]
    assert np.isclose(function(1.0), np.e)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["kernel"], 2),
        (["kernel", "k.hip", "-o", "k.so", "--wave", "16"], 2),
        (["assemble", "k.hip"], 2),
        (["runtime"], 2),
    ],
)
def test_usage(driver: Driver, arguments: list[str], code: int) -> None:
    assert driver.run(*arguments).returncode == code


@pytest.mark.parametrize(
    ("compiler", "code"),
    [("zig:/nonexistent", 3), ("cxx:/nonexistent/g++", 3), ("cxx:", 2), ("msvc:cl", 2)],
)
def test_bad_compiler(driver: Driver, tmp_path: Path, compiler: str, code: int) -> None:
    source = tmp_path / "kernel.hip"
    source.write_text("int x;\n")
    done = replace(driver, compiler=compiler).run("kernel", source, "-o", tmp_path / "k.so")
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


PROGRAM = {
    "main.cpp": """
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include "answer.h"
int main(int argc, char** argv) {
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  printf("%d %d %g %s\\n", argc, answer(), exp(0.0), library != nullptr ? "loaded" : dlerror());
  return library != nullptr ? 7 : 1;
}
""",
    "answer.cpp": '#include "answer.h"\nint answer() { static int calls; return 42 + calls++; }\n',
    "answer.h": "int answer();\n",
}


@pytest.fixture
def program(tmp_path: Path) -> Path:
    directory = tmp_path / "source"
    directory.mkdir()
    for name, text in PROGRAM.items():
        (directory / name).write_text(text)
    return directory


def test_program_loads_the_runtime(
    driver: Driver, program: Path, tmp_path: Path, runtime: Path
) -> None:
    driver.build("program", program, "-o", tmp_path / "program")
    done = subprocess.run(
        [tmp_path / "program", runtime], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (7, "2 42 1 loaded\n")


def test_program_has_the_same_bytes_everywhere(
    driver: Driver, program: Path, tmp_path: Path
) -> None:
    driver.build("program", program, "-o", tmp_path / "one")
    moved = program.rename(tmp_path / "moved")
    driver.build("program", moved / "main.cpp", moved / "answer.cpp", "-o", tmp_path / "two")
    one = (tmp_path / "one").read_bytes()
    assert str(tmp_path).encode() not in one
    driver.build("program", moved, "-o", tmp_path / "three")
    assert (tmp_path / "three").read_bytes() == one


def test_program_that_lacks_a_function(driver: Driver, program: Path, tmp_path: Path) -> None:
    done = driver.run("program", program / "main.cpp", "-o", tmp_path / "program")
    assert done.returncode == 1
    assert "_Z6answerv" in done.stderr


def test_program_that_does_not_compile(driver: Driver, program: Path, tmp_path: Path) -> None:
    (program / "answer.cpp").write_text("int answer( { return 42; }\n")
    done = driver.run("program", program, "-o", tmp_path / "program")
    assert done.returncode == 1
    assert "answer.cpp:1" in done.stderr


def test_runtime_is_deterministic(driver: Driver, runtime: Path, tmp_path: Path) -> None:
    driver.build("runtime", "-o", tmp_path / "again.so")
    assert (tmp_path / "again.so").read_bytes() == runtime.read_bytes()
