"""Nsight Compute: where it is, which counters it has, and what it has counted of kernels."""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_HOMES = (
    "/usr/local/cuda*/bin",
    "/opt/nvidia/nsight-compute/*",
    "/usr/local/cuda*/nsight-compute*",
)
_OPTIONS = ("--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none")
_WATCHING = ("--target-processes", "all")
_COLUMN = {"id": "ID", "kernel": "Kernel Name", "stream": "Stream"}
_GRID, _BLOCK = "Grid Size", "Block Size"
_NUMBER = re.compile(r"\d+")
_SAID_LINES = 12


class ProfilerError(Exception):
    """The profiler is not there, or has counted nothing; the text says which."""


@dataclass(frozen=True)
class Profiled:
    """One launch.

    Attributes:
        stream: as the profiler calls it; equal for launches on one.
        counters: by name; without those that it could not read.
    """

    kernel: str
    stream: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    counters: Mapping[str, float] = field(hash=False)


def find() -> str:
    """The program. Raises ProfilerError."""
    found = shutil.which("ncu") or next(
        (str(path) for home in _HOMES for path in Path("/").glob(f"{home[1:]}/ncu")), None
    )
    if found is None:
        raise ProfilerError("there is no ncu, neither on the PATH nor where CUDA is installed")
    return found


def known(program: str, wanted: Sequence[str], home: Path) -> list[str]:
    """Those of the counters that it has for the devices of this machine. Raises ProfilerError."""
    done = _run([program, "--query-metrics"], home, 60.0)
    names = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    found = [metric for metric in wanted if metric.partition(".")[0] in names]
    if not found:
        raise ProfilerError(f"ncu names no counter: {_end(done)}")
    return found


def profile(
    program: str, counters: Sequence[str], command: Sequence[str], log: Path, timeout: float
) -> tuple[list[Profiled], str]:
    """Run ``command`` and count what its kernels do, in order; and what the command printed.

    The profiler's own words stay in ``log``. Raises ProfilerError.
    """
    options = [*_OPTIONS, *_WATCHING, "--log-file", str(log), "--metrics", ",".join(counters)]
    done = _run([program, *options, *command], log.parent, timeout)
    launches = read(log.read_text()) if log.is_file() else []
    if not launches:
        told = log.read_text()[-2000:] if log.is_file() else ""
        raise ProfilerError(f"ncu counted nothing: {' '.join(told.split())} {_end(done)}")
    return launches, done.stdout


def read(text: str) -> list[Profiled]:
    """What a log says: a row of names, one of units, and one for each launch.

    Lines of the profiler's own are in between.
    """
    rows = list(csv.reader(line for line in text.splitlines() if line.startswith('"')))
    if not rows or any(name not in rows[0] for name in (*_COLUMN.values(), _GRID, _BLOCK)):
        return []
    head, *launches = rows
    found = [dict(zip(head, row, strict=False)) for row in launches]
    return [_launch(row) for row in found if row[_COLUMN["id"]].strip()]


def _launch(row: Mapping[str, str]) -> Profiled:
    counters = {}
    for name, value in row.items():
        plain = value.replace(",", "")
        if "__" in name and re.fullmatch(r"[-+.\deE]+", plain):
            counters[name] = float(plain)
    grid, block = (tuple(map(int, _NUMBER.findall(row[name]))) for name in (_GRID, _BLOCK))
    return Profiled(row[_COLUMN["kernel"]], row[_COLUMN["stream"]], grid, block, counters)


def _run(command: Sequence[str], home: Path, timeout: float) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            env={**os.environ, "HOME": str(home)},  # where it may write its sections
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
    except subprocess.TimeoutExpired:
        raise ProfilerError(f"ncu took more than {timeout:.0f} s") from None


def _end(done: subprocess.CompletedProcess[str]) -> str:
    return " ".join("\n".join((done.stdout + done.stderr).splitlines()[-_SAID_LINES:]).split())
