"""The gate ``counters``: kernels whose bound is known, and own kernels in HIP and Triton."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cheat_suite import HERE as CANDIDATES
from workplace import PLATFORM, Ran, Workplace

OWN = (
    "//tasks/hip2hip/softmax",
    "//tasks/torch2hip/gelu",
    "//tasks/triton2triton/matmul",
    "//tasks/triton2triton/swiglu",
)
_ELEMENTS = 1 << 26
_BUILD = """\
[[hip2hip]]
name      = "{name}"
kernel    = "doubling.hip"
reference = "reference.py"
brief     = "Double every element of a vector of n floats."
entry     = "doubling"
inputs    = {{ x = "T[n]" }}
outputs   = {{ y = "T[n]" }}
dims      = {{ n = "1..{elements}" }}
dtypes    = ["f32"]
configs   = [ {{ n = {elements} }} ]
flops     = "n"
"""
_KERNEL = """\
#include <hip/hip_runtime.h>
#include <stdint.h>
#include <stdlib.h>

__global__ void doubled(const float* x, float* y, int64_t n) {
  int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  BODY
}

extern "C" hipError_t doubling_f32(const float* x, float* y, int64_t n, hipStream_t stream) {
  LAUNCH
  END
}
"""
_LINE = "if (i < n) y[i] = 2.0f * x[i];"
_STRIDE = "for (; i < n; i += gridDim.x * 256L) y[i] = 2.0f * x[i];"
_LOOP = "float v = x[i]; for (int k = 0; k < 4000; ++k) v = v * 1.0001f + 0.5f; y[i] = v;"


@dataclass(frozen=True)
class Case:
    """A kernel, and what has to be said of it: kinds of findings, or the reason of a failure."""

    body: str
    kinds: frozenset[str] = frozenset()
    reason: str = ""
    blocks: str = "(n + 255) / 256"
    launch: str = "doubled<<<BLOCKS, 256, 0, stream>>>(x, y, n);"
    end: str = "return hipGetLastError();"

    @property
    def source(self) -> str:
        """The whole kernel."""
        text = _KERNEL.replace("BODY", self.body).replace("LAUNCH", self.launch)
        text = text.replace("BLOCKS", self.blocks)
        return text.replace("END", self.end)


def _kinds(*names: str) -> frozenset[str]:
    return frozenset(names)


CASES: Mapping[str, Case] = {
    "streams": Case(_LINE, _kinds("MEMORY_BOUND")),
    "jumps": Case(
        "int64_t j = i % 1024 * (n / 1024) + i / 1024; if (i < n) y[j] = 2.0f * x[j];",
        _kinds("UNCOALESCED"),
    ),
    "computes": Case(_LOOP, _kinds("COMPUTE_BOUND")),
    "has_few_blocks": Case(_STRIDE, _kinds("FEW_BLOCKS", "LATENCY_BOUND"), blocks="8"),
    "has_conflicts": Case(
        "__shared__ float t[32 * 256]; for (int k = 0; k < 32; ++k) t[threadIdx.x * 32 + k] = k; "
        f"__syncthreads(); {_LINE} if (i < n) y[i] += t[threadIdx.x * 32 + 7 * i % 32];",
        _kinds("BANK_CONFLICT"),
    ),
    "diverges": Case(
        "float v = x[i]; for (int k = 0; k < threadIdx.x % 32 * 20; ++k) v = v * 1.01f + 1.0f; "
        "y[i] = v;",
        _kinds("DIVERGENT"),
    ),
    "spills": Case(
        "float a[128]; for (int k = 0; k < 128; ++k) a[k] = x[i] + k; "
        "for (int k = 0; k < 128; ++k) a[(int)a[k] & 127] += 1.0f; y[i] = a[i & 127];",
        _kinds("SPILLS"),
    ),
    "launches_nothing": Case(_LINE, end="return hipSuccess;", launch=""),
    "gives_up": Case(_LINE, reason="LAUNCH_ERROR", end="return hipErrorNotSupported;"),
    "ends_the_process": Case(_LINE, reason="CRASH", end="exit(0);"),
    "never_ends": Case(
        "volatile float* p = y + i; while (*p < INFINITY) *p = 0.0f;", reason="TIMEOUT"
    ),
}


def collect(workplace: Workplace) -> dict[str, Any]:
    """What is said of each case, and of own kernels."""
    for name in CASES:
        _declare(workplace, name)
    quick = [f"//profiled/{name}" for name in CASES if name != "never_ends"]
    cases = workplace.kabuild("analyze", *quick, "--agent=expert", "--json", PLATFORM)
    failed = workplace.test("//profiled/...", "--agent=expert", "--gates=counters")
    own = workplace.kabuild("analyze", *OWN, "--agent=expert", "--json", PLATFORM)
    told = _told(cases)
    verdicts = {entry["task"].rpartition(":")[2]: entry for entry in failed.json["targets"]}
    return {
        "cases": {
            name: _outcome(case, told.get(f"//profiled/{name}", {}), verdicts.get(name, {}))
            for name, case in CASES.items()
        },
        "own": {label: _summary(one) for label, one in _told(own).items()},
        "seconds": {"cases": cases.seconds, "verdicts": failed.seconds, "own": own.seconds},
        "said": [*cases.err.splitlines()[-10:], *own.err.splitlines()[-10:]],
    }


def _declare(workplace: Workplace, name: str) -> None:
    package = workplace.root / "profiled" / name
    (package / "solutions/expert").mkdir(parents=True, exist_ok=True)
    (package / "BUILD.toml").write_text(_BUILD.format(name=name, elements=_ELEMENTS))
    (package / "reference.py").write_text((CANDIDATES / "reference.py").read_text())
    (package / "doubling.hip").write_text(CASES["streams"].source)
    (package / "solutions/expert/doubling.hip").write_text(CASES[name].source)


def _told(ran: Ran) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(ran.out)
    except ValueError:
        return {}
    return found


def _outcome(case: Case, told: Mapping[str, Any], verdict: Mapping[str, Any]) -> dict[str, Any]:
    """What was expected, and what came: kinds of findings, or a reason."""
    kinds = sorted({finding["kind"] for finding in told.get("findings", ())})
    reason = verdict.get("reason", "absent")
    right = reason == case.reason and (bool(case.reason) or case.kinds <= set(kinds))
    return {
        "expected": case.reason or " ".join(sorted(case.kinds)),
        "got": reason or " ".join(kinds),
        "as_expected": right,
        "texts": [finding["text"] for finding in told.get("findings", ())],
        "summary": verdict.get("summary", ""),
        "seconds": verdict.get("seconds"),
    }


def _summary(told: Mapping[str, Any]) -> dict[str, Any]:
    calls = told["calls"]
    return {
        "configs": len(calls),
        "whole": all(call["whole"] for call in calls),
        "kernels": sorted({launch["kernel"] for call in calls for launch in call["launches"]}),
        "kinds": sorted({finding["kind"] for finding in told["findings"]}),
    }
