"""The vector instructions of this processor, by which PyTorch and NumPy choose code.

They are not part of any key, although the last digits of ``exp`` differ between AVX-512 and AVX2.
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
    """The processor's best level; empty if the kernel does not say."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return next((level for level, needed in _LEVELS.items() if needed <= set(flags)), "")
