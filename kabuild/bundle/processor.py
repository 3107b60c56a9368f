"""Which vector instructions this machine's processor has: PyTorch and NumPy choose by them.

No key holds it, and ``exp`` ends in other last digits with AVX-512 than with AVX2.
"""

from __future__ import annotations

from pathlib import Path

_LEVELS = {
    "x86-64-v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "x86-64-v3": {"avx2", "fma", "f16c", "bmi2"},
}
"""By the names of the x86-64 psABI, the best first."""
_CPUINFO = Path("/proc/cpuinfo")


def instructions(cpuinfo: Path = _CPUINFO) -> str:
    """The best level that the processor has; empty where the kernel does not say."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return next((level for level, needed in _LEVELS.items() if needed <= set(flags)), "")
