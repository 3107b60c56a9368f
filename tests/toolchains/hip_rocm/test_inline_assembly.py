"""Inline assembly: of kernels it is theirs to write, of the host's code it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from inline_assembly import refusal_on_device, refusal_on_host

from tests.toolchains.hip_rocm.support import RocmDriver

SOURCE = """\
#define KERNEL __attribute__((global))
#define DEVICE __attribute__((device))
static DEVICE float twice(float x) {
  float y;
  asm("v_add_f32 %0, %1, %1" : "=v"(y) : "v"(x));
  return y;
}
struct dim3 { unsigned x, y, z; };
extern "C" int hipLaunchKernel(const void*, dim3, dim3, void**, unsigned long, void*);

KERNEL void fill(float* y) {
  y[0] = twice(y[0]);  // a comment
  asm volatile("s_waitcnt vmcnt(0)" ::: "memory");
}
extern "C" int nothing() {
  return 0;
}
"""
WAITS, RETURNS = '"s_waitcnt vmcnt(0)"', "return 0;"


@pytest.fixture
def driver() -> RocmDriver:
    return RocmDriver()


def test_that_of_kernels_and_their_functions_compiles(driver: RocmDriver, tmp_path: Path) -> None:
    source = tmp_path / "k.hip"
    source.write_text(SOURCE)

    (kernel,) = driver.build(source, tmp_path / "k.so", "gfx942", "--entry=nothing")

    assert kernel["code_bytes"] > 0


@pytest.mark.parametrize(
    ("old", "new", "place", "said"),
    [
        (WAITS, '"s_nonsense 7"', "13:16", "invalid instruction"),
        ('"v"(x)', '"Q"(x)', "5:42", "invalid input constraint 'Q' in asm"),
        (WAITS, r'".incbin \"/etc/hostname\""', "13:3", "that can read files"),
        (WAITS, r'".macro m\n.endm"', "13:3", "that can read files"),
        (RETURNS, 'asm volatile("nop"); return 0;', "16:3", "in host code"),
        ("struct dim3", 'asm(".globl evil"); struct dim3', "1:1", "in host code"),
    ],
)
def test_what_is_wrong_is_said_at_its_place(
    driver: RocmDriver, tmp_path: Path, old: str, new: str, place: str, said: str
) -> None:
    source = tmp_path / "k.hip"
    source.write_text(SOURCE.replace(old, new))

    message = driver.refuse(source, "gfx942")

    assert message.startswith(f"{source}:{place}: error: "), message
    assert said in message.splitlines()[0]


@pytest.mark.parametrize(
    "line",
    [
        '.incbin "x"',
        '\tx: .INCBIN "x"',
        '/* " */ .include "x"',
        ".rept 3",
        ".irpc a,bc",
        '.ascii "a" /* */ .incbin "x"',
    ],
)
def test_a_directive_is_found_wherever_it_hides(line: str) -> None:
    text = f'\t.file\t1 "/d" "k.h"\n\t.loc\t1 7 0 # k.h:7\n{line}\n'

    assert refusal_on_device(text, "k.hip").startswith("k.h:7:1: error: ")


@pytest.mark.parametrize(
    "line",
    ['\t.asciz\t".incbin #APP"', "\t.set includes, 1", "; .included", "\t# say #APP", "x.macros:"],
)
def test_what_merely_looks_like_it_is_none(line: str) -> None:
    assert refusal_on_device(line, "k.hip") == ""
    assert refusal_on_host(line, "k.hip") == ""
