"""NVIDIA's Nsight Compute: which counters are read, and what its tables say.

Its log has passed through the candidate's sandbox, so it is untrusted: numbers and names of a known
form, cut short and made printable, that concern only the candidate.
"""

from __future__ import annotations

import csv
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

from alone.watching import Watcher
from base.program import CandidateFault, MachineFault, Program
from runners import confinement, diagnosis
from runners.launcher import Launcher

from counters.launches import MOST_LAUNCHES, WAITS, Launch, Profiled, number, plain_name

_STALLS = {
    "long_scoreboard": "global_memory",
    "short_scoreboard": "shared_memory",
    "lg_throttle": "global_memory_queue",
    "mio_throttle": "shared_memory_queue",
    "math_pipe_throttle": "arithmetic_units",
    "barrier": "barrier",
    "membar": "memory_fence",
    "wait": "fixed_latency",
    "no_instruction": "instruction_fetch",
    "branch_resolving": "branch",
    "drain": "stores_at_the_end",
    "not_selected": "other_warps",
}
_L1 = "l1tex__t_{what}_pipe_lsu_mem_{space}_op_{op}.sum"
_SHARED = "l1tex__data_{what}_pipe_lsu_mem_shared_op_{op}.sum"
_OPERATIONS = {"load": ("ld",), "store": ("st",), "atomic": ("atom", "red")}
_OCCUPANCY = {
    "warps": "warps",
    "blocks": "blocks",
    "registers": "registers",
    "shared_mem": "shared_memory",
}


def _figures() -> dict[str, tuple[str, ...]]:
    """By figure, the counters whose sum it is."""
    found: dict[str, tuple[str, ...]] = {
        "time_ns": ("gpu__time_duration.sum",),
        "memory_percent": ("dram__throughput.avg.pct_of_peak_sustained_elapsed",),
        "l2_percent": ("lts__throughput.avg.pct_of_peak_sustained_elapsed",),
        "l1_percent": ("l1tex__throughput.avg.pct_of_peak_sustained_elapsed",),
        "compute_percent": ("sm__throughput.avg.pct_of_peak_sustained_elapsed",),
        "tensor_percent": ("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",),
        "memory_read_bytes": ("dram__bytes_read.sum",),
        "memory_written_bytes": ("dram__bytes_write.sum",),
        "l1_hit_percent": ("l1tex__t_sector_hit_rate.pct",),
        "l2_hit_percent": ("lts__t_sector_hit_rate.pct",),
        "occupancy_percent": ("sm__warps_active.avg.pct_of_peak_sustained_active",),
        "issued_percent": ("smsp__issue_active.avg.pct_of_peak_sustained_active",),
        "instructions": ("smsp__inst_executed.sum",),
        "lanes_percent": ("smsp__thread_inst_executed_per_inst_executed.pct",),
        "registers": ("launch__registers_per_thread",),
        "blocks_of_device": ("launch__waves_per_multiprocessor",),
    }
    for operation, ops in _OPERATIONS.items():
        for what in ("requests", "sectors"):
            names = tuple(_L1.format(what=what, space="global", op=op) for op in ops)
            found[f"global_{operation}_{what}"] = names
    for operation in ("load", "store"):
        op = _OPERATIONS[operation][0]
        found[f"local_{operation}_sectors"] = (_L1.format(what="sectors", space="local", op=op),)
        passes, conflicts = "wavefronts", "bank_conflicts"
        found[f"shared_{operation}_passes"] = (
            f"l1tex__data_pipe_lsu_{passes}_mem_shared_op_{op}.sum",
        )
        found[f"shared_{operation}_conflicts"] = (_SHARED.format(what=conflicts, op=op),)
        found[f"global_{operation}_bytes_of_sector"] = (
            f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}.ratio",
        )
    for stall, name in _STALLS.items():
        counter = f"smsp__average_warps_issue_stalled_{stall}_per_issue_active.ratio"
        found[f"{WAITS}{name}"] = (counter,)
    for limit, name in _OCCUPANCY.items():
        found[f"blocks_by_{name}"] = (f"launch__occupancy_limit_{limit}",)
    return found


FIGURES: Mapping[str, tuple[str, ...]] = _figures()
_OF_LAUNCH = "launch__"
"""The prefix of what every version knows of a launch, and does not name among its counters."""

_PROGRAMS = {"x86_64": "linux-desktop-*x64", "aarch64": "linux-desktop-*a64"}
_LOG = f"{confinement.TMP}/counters.csv"
_KEPT_BYTES = 16 << 20
_QUERY_SECONDS = 60.0
_MOST_SAID, _MOST_ERRORS = 300, 3
_REFUSALS = {
    "ERR_NVGPUCTRPERM": (
        "Nsight Compute may not read this GPU's counters (ERR_NVGPUCTRPERM). To allow it, load the "
        "driver with NVreg_RestrictProfilingToAdminUsers=0: write 'options nvidia "
        "NVreg_RestrictProfilingToAdminUsers=0' to /etc/modprobe.d/nvidia-counters.conf, and "
        "restart. To run as root is not enough, as candidates run in a sandbox without privileges"
    ),
    "a driver resource was unavailable": (
        "Nsight Compute cannot read this GPU's counters, as another program does, such as DCGM: "
        "'dcgmi profile --pause' stops that one"
    ),
}
"""By what the log says if the driver refuses, the reason for people, and what to do."""

_NONE = "No kernels were profiled"
"""What the log says of a call that launches nothing."""

_ERROR = re.compile(r"^==ERROR== .*$", re.MULTILINE)
_COLUMNS = ("ID", "Kernel Name", "Grid Size", "Block Size")
_INTEGER = re.compile(r"\d{1,10}", re.ASCII)


class Nsight:
    """Nsight Compute over one candidate."""

    name = "Nsight Compute"

    def __init__(self, launcher: Launcher, candidate: Program, home: Path, program: Path) -> None:
        self._program = program.absolute()
        self._watcher = Watcher(launcher, candidate, home, _LOG, _KEPT_BYTES)
        self._starts_itself = candidate.abi != "hip"
        self._known: Sequence[str] = ()

    def profile(self, folder: Path, seconds: Callable[[], float]) -> Profiled:
        """As ``Profiler.profile``."""
        known = self._known = self._known or self._counters(folder)
        argv = (
            *(str(self._program), "--csv", "--page", "raw", "--print-units", "base"),
            *("--clock-control", "none", "--target-processes", "application-only"),
            *(("--profile-from-start", "off") if self._starts_itself else ()),
            *("--launch-count", str(MOST_LAUNCHES + 1), "--log-file", _LOG),
            *("--metrics", ",".join(known)),
        )
        try:
            left = seconds()
            returned, said = self._watcher.watch(self.name, argv, folder, left)
        except CandidateFault as late:
            return Profiled(fault=late)
        except MachineFault as failed:
            _blame_machine(str(failed))
            raise
        log = returned.report.decode(errors="replace")
        launches = read(log)
        if not launches:
            _blame_machine(log)
        told = _told(log)
        if not said.done or returned.status is None:
            both = replace(said, text="\n".join(filter(None, (said.text, told))))
            fault = both.failure(returned, f"under {self.name}", left)
            return Profiled(launches[:MOST_LAUNCHES], fault=fault)
        if launches:
            return Profiled(launches[:MOST_LAUNCHES], whole=len(launches) <= MOST_LAUNCHES)
        if told:  # also where the log goes on to say that nothing was profiled
            raise MachineFault(f"{self.name} counted nothing: {' '.join(told.split())}")
        if _NONE in log:
            return Profiled(whole=True)
        return Profiled(fault=diagnosis.violation(f"spoiled the log of {self.name}"))

    def _counters(self, folder: Path) -> Sequence[str]:
        """Those of ``FIGURES`` that this version has for this device. Raises MachineFault."""
        argv = (str(self._program), "--query-metrics")
        text = self._watcher.run(argv, folder, _QUERY_SECONDS).said.decode(errors="replace")
        named = {line.split()[0] for line in text.splitlines() if line.strip()}
        wanted = sorted({name for names in FIGURES.values() for name in names})
        found = [
            name
            for name in wanted
            if name.startswith(_OF_LAUNCH) or name.partition(".")[0] in named
        ]
        if not any(not name.startswith(_OF_LAUNCH) for name in found):
            told = " ".join(text.split())[-_MOST_SAID:]
            raise MachineFault(f"{self.name} names no counter of this GPU: {told}")
        return found


def find(home: Path) -> Path | None:
    """The program for this machine in an installation; None if it has none."""
    pattern = _PROGRAMS.get(platform.machine())
    found = sorted(home.glob(f"target/{pattern}/ncu")) if pattern else []
    return found[0] if found else None


def read(log: str) -> list[Launch]:
    """The launches in a log: after a row of names and one of units, a row for each.

    No more than one beyond those that are counted. Empty for a log of another form.
    """
    try:
        rows = csv.reader(line for line in log.splitlines() if line.startswith('"'))
        head = next(rows, [])
        if any(name not in head for name in _COLUMNS):
            return []
        found = (dict(zip(head, row, strict=True)) for row in rows if len(row) == len(head))
        launched = (row for row in found if row["ID"].strip())
        return [_launch(row) for row in islice(launched, MOST_LAUNCHES + 1)]
    except csv.Error:  # a cell that is too large, for example
        return []


def _told(log: str) -> str:
    """The errors in a log, line by line: they are not in the output."""
    found = "\n".join(match[0] for match in islice(_ERROR.finditer(log), _MOST_ERRORS))
    return "".join(c if c == "\n" or c.isprintable() else "?" for c in found)[:_MOST_SAID]


def _blame_machine(log: str) -> None:
    """Raise MachineFault if the driver has refused."""
    for said, reason in _REFUSALS.items():
        if said in log:
            raise MachineFault(reason)


def _launch(row: Mapping[str, str]) -> Launch:
    _, kernel, grid, block = (row[name] for name in _COLUMNS)
    return Launch(plain_name(kernel), _integers(grid), _integers(block), dict(_sums(row)))


def _integers(text: str) -> tuple[int, ...]:
    return tuple(map(int, _INTEGER.findall(text)))[:3]


def _sums(row: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    for figure, names in FIGURES.items():
        values = [number(row.get(name, "")) for name in names]
        known = [value for value in values if value is not None]
        if len(known) == len(values):
            yield figure, sum(known)
