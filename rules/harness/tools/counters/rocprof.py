"""AMD's rocprofv3: which counters are read, and what its tables say. Never tried on a device.

Its counters and the form of its tables are those of AMD's documentation for ROCm 7. The tables have
passed through the candidate's sandbox: as ``counters.nsight`` says.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from alone.watching import Watcher
from base.program import CandidateFault, MachineFault, Program
from runners import confinement, diagnosis
from runners.launcher import Launcher

from counters.launches import MOST_LAUNCHES, Launch, Profiled, number, plain_name

GROUPS = (
    ("FETCH_SIZE",),
    ("WRITE_SIZE",),
    ("L2CacheHit",),
    ("VALUBusy", "VALUUtilization", "LDSBankConflict"),
    ("OccupancyPercent",),
)
"""The counters that are read at a time: each group takes a call of its own."""

FIGURES: Mapping[str, tuple[str, float]] = {
    "FETCH_SIZE": ("memory_read_bytes", 1024.0),
    "WRITE_SIZE": ("memory_written_bytes", 1024.0),
    "L2CacheHit": ("l2_hit_percent", 1.0),
    "VALUBusy": ("compute_percent", 1.0),
    "VALUUtilization": ("lanes_percent", 1.0),
    "LDSBankConflict": ("shared_conflict_percent", 1.0),
    "OccupancyPercent": ("occupancy_percent", 1.0),
}
"""By counter, the figure, and what it is multiplied by."""

_PROGRAM = "bin/rocprofv3"
_FOLDER, _NAME = f"{confinement.TMP}/counters", "counters"
_TABLE = f"{_FOLDER}/{_NAME}_counter_collection.csv"
_KEPT_BYTES = 16 << 20
_COLUMNS = (
    *("Dispatch_Id", "Kernel_Name", "Grid_Size", "Workgroup_Size", "VGPR_Count"),
    *("Counter_Name", "Counter_Value", "Start_Timestamp", "End_Timestamp"),
)


class Rocprof:
    """rocprofv3 over one candidate."""

    name = "rocprofv3"

    def __init__(self, launcher: Launcher, candidate: Program, home: Path, program: Path) -> None:
        self._program = program.absolute()
        self._watcher = Watcher(launcher, candidate, home, _TABLE, _KEPT_BYTES)

    def profile(self, folder: Path, seconds: Callable[[], float]) -> Profiled:
        """As ``Profiler.profile``; the launches of the calls of all groups are taken as equal."""
        together: dict[int, Launch] = {}
        for counters in GROUPS:
            argv = (
                *(str(self._program), "--pmc", *counters, "--output-format", "csv"),
                *("-d", _FOLDER, "-o", _NAME, "--"),
            )
            try:
                left = seconds()
                returned, said = self._watcher.watch(self.name, argv, folder, left)
            except CandidateFault as late:
                return Profiled(fault=late)
            if not said.done or returned.status is None:
                fault = said.failure(returned, f"under {self.name}", left)
                return Profiled(list(together.values())[:MOST_LAUNCHES], fault=fault)
            launches = read(returned.report.decode(errors="replace"))
            if not returned.report:
                told = said.text or "it said nothing"
                raise MachineFault(f"{self.name} wrote no counters: {told}")
            if launches is None:
                return Profiled(fault=diagnosis.violation(f"spoiled the table of {self.name}"))
            for place, launch in enumerate(launches):
                before = together.get(place, launch)
                figures = {**before.figures, **launch.figures}
                together[place] = Launch(before.kernel, before.grid, before.block, figures)
        found = list(together.values())
        return Profiled(found[:MOST_LAUNCHES], whole=len(found) <= MOST_LAUNCHES)


def find(home: Path) -> Path | None:
    """The program in an installation; None if it has none."""
    program = home / _PROGRAM
    return program if program.is_file() else None


def read(table: str) -> list[Launch] | None:
    """The launches in a table with a row for each launch and counter; None if it is none.

    No more than one beyond those that are counted.
    """
    found: dict[str, list[Mapping[str, str]]] = {}
    try:
        rows = csv.reader(table.splitlines())
        head = next(rows, [])
        if any(name not in head for name in _COLUMNS):
            return None
        for row in rows:
            cells = dict(zip(head, row, strict=False))
            if len(row) == len(head) and (
                cells["Dispatch_Id"] in found or len(found) <= MOST_LAUNCHES
            ):
                found.setdefault(cells["Dispatch_Id"], []).append(cells)
    except csv.Error:  # a cell that is too large, for example
        return None
    return [_launch(own) for own in found.values()]


def _launch(rows: Sequence[Mapping[str, str]]) -> Launch:
    first = rows[0]
    threads, block = (int(number(first[name]) or 0) for name in ("Grid_Size", "Workgroup_Size"))
    figures = {}
    for row in rows:
        figure, scale = FIGURES.get(row["Counter_Name"], ("", 1.0))
        if figure and (value := number(row["Counter_Value"])) is not None:
            figures[figure] = value * scale
    begun, ended, registers = (
        number(first[name]) for name in ("Start_Timestamp", "End_Timestamp", "VGPR_Count")
    )
    if begun is not None and ended is not None and begun <= ended:
        figures["time_ns"] = ended - begun
    if registers is not None:
        figures["registers"] = registers
    blocks = threads // block if block else 0  # AMD counts a grid in threads
    return Launch(plain_name(first["Kernel_Name"]), (blocks,), (block,), figures)
