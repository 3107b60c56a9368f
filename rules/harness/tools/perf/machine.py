"""The state of the host during measurements: load, clocks, throttling.

Recorded for information: in no key and in no verdict. A figure that this machine does not provide
is None: a virtual machine often does not expose its clock frequency.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_PROCESSORS = "sys/devices/system/cpu"
_MEASURES_CLOCK = "aperfmperf"  # without this CPU flag the kernel repeats a nominal frequency
_STOLEN = 8  # field of /proc/stat's first line
_MHZ = 1e-3  # cpufreq reports kHz


def reading(root: Path = Path("/")) -> dict[str, Any]:
    """The host's figures now; ``root`` contains ``proc`` and ``sys``.

    ``load`` over 1, 5 and 15 minutes; ``mhz`` of the slowest and of the fastest processor;
    ``throttled``, how often heat has slowed down any processor since boot; ``stolen_ms``, the
    time that a hypervisor gave to other machines since boot; ``waiting_ms``, the time in which
    any program here waited for a processor.
    """
    return {
        "load": list(os.getloadavg()),
        "mhz": _ends([*_scaled(root)] or [*_measured(root)]),
        "throttled": _total(
            root.glob(f"{_PROCESSORS}/cpu[0-9]*/thermal_throttle/*_throttle_count")
        ),
        "stolen_ms": _stolen(root),
        "waiting_ms": _waiting(root),
    }


def _scaled(root: Path) -> Iterable[float]:
    for path in root.glob(f"{_PROCESSORS}/cpu[0-9]*/cpufreq/scaling_cur_freq"):
        with contextlib.suppress(OSError, ValueError):
            yield float(path.read_text()) * _MHZ


def _measured(root: Path) -> Iterable[float]:
    lines = _lines(root / "proc/cpuinfo")
    if any(line.startswith("flags") and _MEASURES_CLOCK in line.split() for line in lines):
        for line in lines:
            if line.startswith("cpu MHz"):
                yield float(line.partition(":")[2])


def _ends(values: list[float]) -> list[float] | None:
    return [min(values), max(values)] if values else None


def _total(counters: Iterable[Path]) -> int | None:
    found = []
    for path in counters:
        with contextlib.suppress(OSError, ValueError):
            found.append(int(path.read_text()))
    return sum(found) if found else None


def _stolen(root: Path) -> float | None:
    fields = next(iter(_lines(root / "proc/stat")), "").split()
    if len(fields) <= _STOLEN:
        return None
    return int(fields[_STOLEN]) * 1e3 / os.sysconf("SC_CLK_TCK")


def _waiting(root: Path) -> float | None:
    for line in _lines(root / "proc/pressure/cpu"):
        if line.startswith("some"):
            return int(line.rpartition("total=")[2]) / 1e3
    return None


def _lines(path: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return path.read_text().splitlines()
    return []
