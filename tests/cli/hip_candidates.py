"""HIP candidates that fail or cheat, each beside a benign twin, for the task ``//double``."""

from __future__ import annotations

import platform
from dataclasses import dataclass

from .conftest import KERNEL

RESULT = "y[i] = 2.0f * x[i];"
GUARD = "if (i < n)"
END = "  return hipGetLastError();"
LIBC = "#include <hip/hip_runtime.h>\n"
STANDARD = f"{LIBC}#include <cstdio>\n#include <cstdlib>\n"

_CODE = {  # of a function that hands its arguments to the kernel: assembly is refused
    "x86_64": "0x48f88948, 0x8948f789, 0xca8948d6, 0x0fc2894d, 0x0000c305",
    "aarch64": "0xaa0003e8, 0xaa0103e0, 0xaa0203e1, 0xaa0303e2, 0xaa0403e3, 0xd4000001, 0xd65f03c0",
}
_NUMBERS = {
    "x86_64": "WRITE = 1, NANOSLEEP = 35, CLONE = 56, EXIT = 231, OPEN = 257",
    "aarch64": "WRITE = 64, NANOSLEEP = 101, CLONE = 220, EXIT = 94, OPEN = 56",
}
_MACHINE = platform.machine()
SYSTEM = f"""{LIBC}
constexpr long {_NUMBERS[_MACHINE]};
__attribute__((section(".text"))) static const unsigned CODE[] = {{{_CODE[_MACHINE]}}};
static long system_call(long number, long a, long b, long c, long d) {{
  auto call = reinterpret_cast<long (*)(long, long, long, long, long)>(uintptr_t(CODE));
  return call(number, a, b, c, d);
}}
"""
SLEEP = """\
  long seconds_and_nanoseconds[] = {%s};
  system_call(NANOSLEEP, long(seconds_and_nanoseconds), 0, 0, 0);
"""
FLOOD = """\
  static char line[1024];
  for (char& c : line) c = 'a';
  for (int i = 0; i < %d; ++i) system_call(WRITE, 2, long(line), sizeof line, 0);
"""
FILL = """\
  static char block[1 << 20];
  long file = system_call(OPEN, -100, long("/tmp/big"), 0101, 0600);
  for (int i = 0; i < %d; ++i)
    if (system_call(WRITE, file, long(block), sizeof block, 0) < 0) return hipErrorNotFound;
"""
ALLOCATE = """\
  for (int i = 0; i < %s; ++i) {
    volatile char* block = static_cast<volatile char*>(malloc(1 << 26));
    for (int at = 0; at < 1 << 26; at += 1 << 20) block[at] = 1;
  }
"""


@dataclass(frozen=True)
class Candidate:
    """A kernel that fails, how it is judged, and an honest kernel that does much the same.

    ``bad`` and ``twin`` are edits of the honest kernel: pairs of old and new text.
    """

    name: str
    verdict: str
    reason: str
    words: tuple[str, ...]
    bad: tuple[tuple[str, str], ...]
    twin: tuple[tuple[str, str], ...] = ()

    @property
    def source(self) -> str:
        """The kernel that fails."""
        return _edited(self.bad)

    @property
    def twin_source(self) -> str:
        """The kernel that passes."""
        return _edited(self.twin)


def _edited(edits: tuple[tuple[str, str], ...]) -> str:
    text = KERNEL
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return text


def _result(expression: str) -> tuple[tuple[str, str], ...]:
    return ((RESULT, expression),)


def _before_end(code: str, helpers: str = LIBC) -> tuple[tuple[str, str], ...]:
    return ((LIBC, helpers), (END, f"{code}\n{END}"))


AT_COMPILE = (
    Candidate(
        "does_not_compile",
        "FAIL",
        "COMPILE_ERROR",
        ("double.hip:5:", "undeclared identifier 'factor'"),
        _result("y[i] = factor * x[i];"),
    ),
    Candidate(
        "lacks_its_entry",
        "FAIL",
        "MISSING_ENTRY",
        ("'twice_f32'", 'extern "C" functions: twice_f64'),
        (("twice_f32", "twice_f64"),),
    ),
    Candidate(
        "hides_its_entry",
        "FAIL",
        "MISSING_ENTRY",
        ("'twice_f32'", 'not extern "C"'),
        (('extern "C" ', ""),),
    ),
    Candidate(
        "uses_a_library",
        "FAIL",
        "UNSUPPORTED_FEATURE",
        ("double.hip:2:", "rocblas"),
        ((LIBC, f"{LIBC}#include <rocblas/rocblas.h>\n"),),
    ),
    Candidate(
        "opens_a_file",
        "FAIL",
        "COMPILE_ERROR",
        ("double.hip:12:", "fopen"),
        _before_end('  fopen("/etc/passwd", "r");', STANDARD),
        _before_end('  printf("%d", int(n));', STANDARD),
    ),
)

AT_RUN = (
    Candidate(
        "hangs",
        "FAIL",
        "TIMEOUT",
        ("no answer within",),
        # A loop without end is among the cheats; this one takes no processor from other tests.
        _before_end(SLEEP % "1 << 30, 0", SYSTEM),
        _before_end(SLEEP % "0, 1000", SYSTEM),
    ),
    Candidate(
        "segfaults",
        "FAIL",
        "CRASH",
        ("SIGSEGV",),
        _before_end("  *reinterpret_cast<volatile int*>(8) = 1;"),
        _before_end("  int here = 0; *static_cast<volatile int*>(&here) = 1;"),
    ),
    Candidate(
        "writes_one_past_the_end",
        "REJECTED",
        "OUT_OF_BOUNDS",
        ("past the end of 'y'",),
        ((GUARD, "if (i == n) y[i] = 1;\n  if (i < n)"),),
        ((GUARD, "if (i == n - 1) y[i] = 1;\n  if (i < n)"),),
    ),
    Candidate(
        "writes_far_past_the_end",
        "REJECTED",
        "OUT_OF_BOUNDS",
        ("behind 'y'",),
        _result(f"{RESULT}\n  y[i + 3000] = 0;"),
        _result("y[i + 3000 - 3000] = 2.0f * x[i];"),
    ),
    Candidate(
        "writes_nan",
        "FAIL",
        "NON_FINITE",
        ("nan",),
        _result('y[i] = i ? 2.0f * x[i] : __builtin_nanf("");'),
    ),
    Candidate(
        "is_wrong",
        "FAIL",
        "WRONG_RESULT",
        ("worst", "[17]"),
        _result("y[i] = i == 17 ? 2.0f * x[i] + 1.0f : 2.0f * x[i];"),
        _result("y[i] = i == 17 ? x[i] + x[i] : 2.0f * x[i];"),
    ),
    Candidate(
        "leaves_part_unwritten",
        "FAIL",
        "INCOMPLETE_OUTPUT",
        ("'y'",),
        ((GUARD, "if (i < n - 1)"),),
        ((GUARD, "if (i < n && i >= 0)"),),
    ),
    Candidate(
        "returns_an_error",
        "FAIL",
        "LAUNCH_ERROR",
        ("hipErrorInvalidValue (1)",),
        _before_end("  return hipErrorInvalidValue;"),
        _before_end("  if (n < 0) return hipErrorInvalidValue;"),
    ),
    Candidate(
        "floods_stderr_and_forks",
        "REJECTED",
        "FORBIDDEN_SYSCALL",
        ("system call",),
        _before_end(f"{FLOOD % 4096}  for (;;) system_call(CLONE, 17, 0, 0, 0);", SYSTEM),
        _before_end(FLOOD % 4096, SYSTEM),
    ),
    Candidate(
        "fills_the_disk",
        "FAIL",
        "LAUNCH_ERROR",
        ("hipErrorNotFound (500)",),
        _before_end(FILL % 100000, SYSTEM),
        _before_end(FILL % 1, SYSTEM),
    ),
    Candidate(
        "allocates_without_end",
        "FAIL",
        "OUT_OF_MEMORY",
        ("memory",),
        _before_end(ALLOCATE % "1 << 30", STANDARD),
        _before_end(ALLOCATE % "1", STANDARD),
    ),
    Candidate(
        "exits_silently",
        "FAIL",
        "CRASH",
        ("exit code 0",),
        _before_end("  system_call(EXIT, 0, 0, 0, 0);", SYSTEM),
        _before_end("  if (n < 0) system_call(EXIT, 0, 0, 0, 0);", SYSTEM),
    ),
    Candidate(
        "changes_its_input",
        "REJECTED",
        "INPUT_MUTATED",
        ("'x'",),
        _result(f"{RESULT}\n  if (i == 0) const_cast<float*>(x)[0] = 1;"),
        _result("{\n    float mine = x[i];\n    mine *= 2;\n    y[i] = mine;\n  }"),
    ),
)
