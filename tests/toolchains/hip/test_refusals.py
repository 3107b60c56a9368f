"""What a source may not do is refused by name, at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolchains.hip.support import Driver

HEAD = "#include <hip/hip_runtime.h>\n/* a comment\n   of two lines */\n"


def in_kernel(statement: str) -> str:
    return f"{HEAD}__global__ void k(int* p) {{\n  {statement}\n}}\n"


UNSUPPORTED = [
    (in_kernel('asm volatile("nop");'), 5, 3, "inline assembly 'asm'"),
    (in_kernel('__asm__("nop");'), 5, 3, "inline assembly '__asm__'"),
    (in_kernel("__builtin_amdgcn_mfma_f32_32x32x1f32(1, 2);"), 5, 3, "matrix core (MFMA)"),
    (in_kernel("__builtin_amdgcn_wmma_f32_16x16x16_f16_w32(1, 2);"), 5, 3, "matrix core (WMMA)"),
    (in_kernel("p[0] = __builtin_amdgcn_update_dpp(0, p[0], 1, 1, 1, 1);"), 5, 10, "(DPP)"),
    (in_kernel("__builtin_amdgcn_s_memtime();"), 5, 3, "builtin of AMD's compiler"),
    (in_kernel("p[0] = tex2D<int>(t, 0, 0);"), 5, 10, "texture fetch 'tex2D'"),
    (f"{HEAD}texture<float, 2> t;\n", 4, 1, "texture"),
    (in_kernel("hipSurfaceObject_t s;"), 5, 3, "surface"),
    (in_kernel("auto g = cooperative_groups::this_grid();"), 5, 32, "grid-wide cooperative"),
    (in_kernel("__nanosleep(100);"), 5, 3, "sleeping thread '__nanosleep'"),
    (f"{HEAD}const char* when = __TIME__;\n", 4, 20, "time of day"),
    (in_kernel("other<<<1, 1>>>(p);"), 5, 8, "dynamic parallelism"),
    (f"{HEAD}void f() {{ hipLaunchCooperativeKernel(0, 1, 1, 0, 0, 0); }}\n", 4, 12, "cooperative"),
    (f"{HEAD}#include <hipcub/hipcub.hpp>\n", 4, 10, "library 'hipcub'"),
    (f'{HEAD}#include "rocprim/rocprim.hpp"\n', 4, 10, "library 'rocprim'"),
    (f"{HEAD}#include <thrust/device_vector.h>\n", 4, 10, "library 'thrust'"),
    (f"{HEAD}#include <rocblas/rocblas.h>\n", 4, 10, "library 'rocblas'"),
    (f"{HEAD}#include <torch/extension.h>\n", 4, 10, "library 'torch'"),
    (f'{HEAD}#embed "/etc/passwd"\n', 4, 2, "directive '#embed'"),
    (f"{HEAD}#include_next <stdio.h>\n", 4, 2, "directive '#include_next'"),
    (f'{HEAD}#line 7 "elsewhere.hip"\n', 4, 2, "directive '#line'"),
    (f'{HEAD}#pragma GCC dependency "/etc/passwd"\n', 4, 2, "pragma 'GCC dependency'"),
    (f"{HEAD}#define NAME <stdio.h>\n#include NAME\n", 5, 2, "something other than a name"),
    (f"{HEAD}#define PROBE __has_include\n", 4, 15, "__has_include"),
    (f"{HEAD}%:include <stdio.h>\n", 4, 1, "digraph '%:'"),
]


HOST, DEVICE = "static int f(int x) { return x + 1; }\n", "__device__ int f(int x) { return x; }\n"
TEMPLATE = """\
template <class T> __global__ void k(T* p) { *p = f(*p); }
void g(int* p) { k<<<1, 1>>>(p); }
"""
OF_ANOTHER_SIDE = [
    (
        f"{HEAD}{HOST}__global__ void k(int* p) {{ *p = f(*p); }}\n",
        5,
        34,
        "function for call to 'f'",
    ),
    (f"{HEAD}{DEVICE}int g() {{ return f(1); }}\n", 5, 18, "function for call to 'f'"),
    (f"#include <algorithm>\n{in_kernel('std::sort(p, p + 3);')}", 6, 3, "call to 'sort'"),
    (
        f"{HEAD}{HOST}{TEMPLATE}",
        5,
        51,
        "function for call to 'f'",
    ),
]
"""Calls of the host's functions by the device's, and the other way round."""


@pytest.mark.parametrize(("text", "line", "column", "reason"), OF_ANOTHER_SIDE)
def test_functions_of_the_other_side_are_refused(
    driver: Driver, tmp_path: Path, text: str, line: int, column: int, reason: str
) -> None:
    source = tmp_path / "kernel.hip"
    source.write_text(text)
    message = driver.refuse(source)
    assert message.startswith(f"{source}:{line}:{column}: error: no matching function"), message
    assert reason in message.splitlines()[0]
    assert "a kernel calls only functions with __device__" in message.splitlines()[-1]


@pytest.mark.parametrize(("text", "line", "column", "reason"), UNSUPPORTED)
def test_unsupported_feature(
    driver: Driver, tmp_path: Path, text: str, line: int, column: int, reason: str
) -> None:
    source = tmp_path / "kernel.hip"
    source.write_text(text)
    message = driver.refuse(source)
    assert message.startswith(f"{source}:{line}:{column}: unsupported: "), message
    assert reason in message.splitlines()[0]
    shown, caret = message.splitlines()[1:3]
    assert shown == f"  {text.splitlines()[line - 1]}"
    assert caret.index("^") == column + 1


ESCAPES = [
    '#include "/etc/passwd"',
    "#include </etc/passwd>",
    '#include "../outside.h"',
    '#include "sub/../../outside.h"',
    "#include <../outside.h>",
    '#include "link.h"',
    '#if __has_include("/etc/passwd")\n#endif',
    '#if __has_include("../outside.h")\n#endif',
]


@pytest.mark.parametrize("directive", ESCAPES)
def test_include_outside_the_given_directories(
    driver: Driver, tmp_path: Path, directive: str
) -> None:
    inside = tmp_path / "inside"
    (inside / "sub").mkdir(parents=True)
    (tmp_path / "outside.h").write_text("#define OUTSIDE 1\n")
    (inside / "link.h").symlink_to(tmp_path / "outside.h")
    source = inside / "kernel.hip"
    source.write_text(f"{HEAD}{directive}\n")
    message = driver.refuse(source)
    assert message.startswith(f"{source}:4:"), message
    assert "outside the include directories" in message


def test_header_of_the_source_is_checked_too(driver: Driver, tmp_path: Path) -> None:
    (tmp_path / "helper.h").write_text('\nstatic void f() { asm(""); }\n')
    source = tmp_path / "kernel.hip"
    source.write_text(f'{HEAD}#include "helper.h"\n')
    assert driver.refuse(source).startswith(f"{tmp_path / 'helper.h'}:2:19: unsupported: inline")


def test_assembly_by_macros_does_not_get_through(driver: Driver, tmp_path: Path) -> None:
    source = tmp_path / "kernel.hip"
    source.write_text(
        '#define A(x, y) x##y\nextern "C" void f() { A(as, m)(".incbin \\"/x\\""); }\n'
    )
    message = driver.refuse(source)
    assert f"{source}:2:" in message
    assert "assembly" in message


@pytest.mark.parametrize(
    "guard", ["#ifdef __CUDA_ARCH__", "#if 0", "#if defined(__gfx942__) || defined(__gfx90a__)"]
)
def test_code_for_other_compilers_is_not_looked_at(
    driver: Driver, tmp_path: Path, guard: str
) -> None:
    source = tmp_path / "kernel.hip"
    text = f'{guard}\n  asm("nop");\n#else\nextern "C" int f() {{ return 1; }}\n#endif\n'
    source.write_text(text)
    driver.build("kernel", source, "-o", tmp_path / "k.so", "--entry", "f")


def test_word_in_string_or_comment_is_not_a_use(driver: Driver, tmp_path: Path) -> None:
    source = tmp_path / "kernel.hip"
    source.write_text('// asm("nop")\nextern "C" const char* f() { return "asm tex2D <<<"; }\n')
    driver.build("kernel", source, "-o", tmp_path / "k.so")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("/* no end", 1, "unterminated comment"),
        ("\nint x = 1;\x01\n", 2, "control character"),
        (f"{HEAD}void f() {{ k<<<1, 1(2); }}", 4, "'<<<' without '>>>'"),
        (f"{HEAD}void f() {{ <<<1, 1>>>(2); }}", 4, "does not follow a kernel"),
        (f"{HEAD}void f() {{ k<<<1, 1>>> = 2; }}", 4, "expected '(' after '>>>'"),
        (f"{HEAD}extern __shared__ float x;", 4, "TYPE NAME[]"),
    ],
)
def test_malformed_source(
    driver: Driver, tmp_path: Path, text: str, line: int, reason: str
) -> None:
    source = tmp_path / "kernel.hip"
    source.write_text(text)
    message = driver.refuse(source)
    assert message.startswith(f"{source}:{line}:"), message
    assert reason in message


def test_source_that_is_not_text(driver: Driver, tmp_path: Path) -> None:
    source = tmp_path / "kernel.hip"
    source.write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in driver.refuse(source)


def test_endless_chain_of_headers(driver: Driver, tmp_path: Path) -> None:
    for number in range(1500):
        (tmp_path / f"h{number}.h").write_text(f'#include "h{number + 1}.h"\n')
    source = tmp_path / "kernel.hip"
    source.write_text('#include "h0.h"\n')
    assert "nest too deeply" in driver.refuse(source)


def test_missing_source(driver: Driver, tmp_path: Path) -> None:
    assert "No such file" in driver.refuse(tmp_path / "absent.hip")
