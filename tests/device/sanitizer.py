"""The gate ``sanitize`` by compute-sanitizer: mistakes that must be found, and kernels in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cheat_suite import HERE as CANDIDATES
from workplace import Workplace

_TASKS = ("//tasks/hip2hip/...", "//tasks/torch2hip/...")
_STARTER = "--test_tag_filters=starter"
"""Those that have an expert."""

_BUILD = """\
[[hip2hip]]
name      = "{name}"
kernel    = "doubling.hip"
reference = "reference.py"
brief     = "Double every element of a vector of n floats."
entry     = "doubling"
inputs    = {{ x = "T[n]" }}
outputs   = {{ y = "T[n]" }}
dims      = {{ n = "1..67108864" }}
dtypes    = ["f32"]
configs   = [ {{ n = 1000003 }} ]
flops     = "n"
"""
_KERNEL = """\
#include <hip/hip_runtime.h>
#include <stdint.h>

__global__ void doubled(const float* x, float* y, int64_t n) {
  int64_t i = blockIdx.x * 256L + threadIdx.x;
  BODY
}

extern "C" hipError_t doubling_f32(const float* x, float* y, int64_t n, hipStream_t stream) {
  doubled<<<(n + 255) / 256, 256, 0, stream>>>(x, y, n);
  return END;
}
"""
_LINE = "if (i < n) y[i] = 2.0f * x[i];"
_TILE = "__shared__ float t[256]; t[threadIdx.x] = i < n ? x[i] : 0.0f;"
_USE = "if (i < n) y[i] = 2.0f * t[threadIdx.x] + 0.0f * t[255 - threadIdx.x];"


@dataclass(frozen=True)
class Case:
    """A kernel, and what must be said of it; of a right one, nothing."""

    body: str
    reason: str = ""
    said: str = ""
    end: str = "hipGetLastError()"

    @property
    def source(self) -> str:
        """The whole kernel; its body is on line 6."""
        return _KERNEL.replace("BODY", self.body).replace("END", self.end)


CASES: Mapping[str, Case] = {
    "right": Case(_LINE),
    "uses_a_tile": Case(f"{_TILE} __syncthreads(); {_USE}"),
    "talks_in_a_warp": Case(
        f"{_TILE} __syncwarp(); float own = t[threadIdx.x ^ 1]; own = __shfl_xor(own, 1); "
        "if (i < n) y[i] = 2.0f * own;"
    ),
    "reads_past_the_end": Case(
        "float v = i <= n ? x[i] : 0.0f; if (i < n) y[i] = 2.0f * v;",
        "OUT_OF_BOUNDS",
        "doubling.hip:6:3: OUT_OF_BOUNDS in doubled: read of 4 bytes, 0 bytes past the end of 'x'",
    ),
    "writes_before_the_start": Case(
        f"{_LINE} if (i == 0) y[i - 1] = 0.0f;",
        "OUT_OF_BOUNDS",
        "write of 4 bytes, 4 bytes before the start of 'y'",
    ),
    "leaves_the_tile": Case(
        f"{_TILE} __syncthreads(); const float* p = t; {_USE} if (i < n) y[i] += 0.0f * p[i + n + "
        "(1 << 20)];",
        "OUT_OF_BOUNDS",
        "Invalid __shared__ read of size 4 bytes",
    ),
    "reads_its_output": Case(
        "if (i < n) { float was = y[i]; y[i] = 2.0f * x[i]; if (was == 12345.0f) y[i] = was; }",
        "UNINITIALISED",
        "of 'y' (",
    ),
    "forgets_a_barrier": Case(f"{_TILE} {_USE}", "DATA_RACE", "by another thread"),
    "parts_at_a_barrier": Case(
        f"{_LINE} if (threadIdx.x % 2) __syncthreads(); if (i < n) y[i] += 0.0f; __syncthreads();",
        "DIVERGENT_BARRIER",
        "doubling.hip:6:",
    ),
    "gives_up": Case(
        _LINE, "LAUNCH_ERROR", "returned hipErrorNotSupported (801)", end="hipErrorNotSupported"
    ),
    "never_ends": Case(
        f"{_LINE} volatile float* p = y; while (*p < INFINITY) *p = 0.0f;",
        "TIMEOUT",
        "gave no answer",
    ),
}


def collect(workplace: Workplace) -> dict[str, Any]:
    """What was found in each of the cases, and in the kernels of our own tasks."""
    for name in CASES:
        _declare(workplace, name)
    ran = workplace.test("//sanitized/...", "--agent=expert", "--gates=sanitize")
    found = {_name(entry): entry for entry in ran.json["targets"]}
    own = workplace.test(*_TASKS, "--agent=expert", "--gates=sanitize", _STARTER)
    given = workplace.test(_TASKS[0], "--agent=none", "--gates=sanitize", _STARTER)
    return {
        "cases": {name: _outcome(CASES[name], found.get(name, {})) for name in CASES},
        "said": ran.err.splitlines()[-20:],
        "experts": _verdicts(own.json["targets"]),
        "given kernels": _verdicts(given.json["targets"]),
        "seconds": {"cases": ran.seconds, "experts": own.seconds, "given kernels": given.seconds},
    }


def _declare(workplace: Workplace, name: str) -> None:
    package = workplace.root / "sanitized" / name
    (package / "solutions/expert").mkdir(parents=True, exist_ok=True)
    (package / "BUILD.toml").write_text(_BUILD.format(name=name))
    (package / "reference.py").write_text((CANDIDATES / "reference.py").read_text())
    (package / "doubling.hip").write_text(CASES["right"].source)
    (package / "solutions/expert/doubling.hip").write_text(CASES[name].source)


def _outcome(case: Case, entry: Mapping[str, Any]) -> dict[str, Any]:
    expected = ("FAIL", case.reason) if case.reason else ("PASS", "")
    got = (entry.get("verdict", "absent"), entry.get("reason", ""))
    right = got == expected and case.said in entry.get("summary", "")
    return {
        "expected": " ".join(filter(None, expected)),
        "got": " ".join(filter(None, got)),
        "as_expected": right,
        "summary": entry.get("summary", ""),
        "seconds": entry.get("seconds"),
    }


def _verdicts(entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    kept = ("verdict", "reason", "summary", "seconds")
    return {entry["task"]: {key: entry.get(key) for key in kept} for entry in entries}


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry["task"].rpartition(":")[2])
