"""Watches a candidate with another program: NVIDIA's compute-sanitizer."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from alone.call_files import write_call
from alone.patience import Patience
from alone.watching import Watcher
from base.granted_time import GRANTED
from base.program import CandidateFault, Config
from base.spec import Spec, SpecError
from runners import confinement, diagnosis
from runners.launcher import Launcher
from terms.reasons import Reason
from torch import Tensor

from sanitize.examiner import SanitizePolicy
from sanitize.findings import Finding
from sanitize.places import Places
from sanitize.reports import ReportError, read_report

TOOLS = {
    "synccheck": Reason.DIVERGENT_BARRIER,
    "memcheck": Reason.OUT_OF_BOUNDS,
    "racecheck": Reason.DATA_RACE,
    "initcheck": Reason.UNINITIALISED,
}
"""What each tool looks for. Each tool needs its own run of the candidate."""

_OPTIONS = {"memcheck": ("--padding=4096", "--report-api-errors=no")}

_HOMES = (("compute-sanitizer", "compute-sanitizer"), ("bin", "lib"))
"""Where the program and its libraries are, in an installation and in NVIDIA's packages."""
_PROGRAM = "compute-sanitizer"
_REPORT = f"{confinement.TMP}/report.xml"
_KEPT_BYTES = 8 << 20


class Watched:
    """Calls the candidate once for each config and tool, each time in a new process."""

    def __init__(
        self,
        spec: Spec,
        policy: SanitizePolicy,
        launcher: Launcher,
        places: Places,
        sanitizer: Path,
    ) -> None:
        self._spec = spec
        self._policy = policy
        self._places = places
        home = sanitizer.absolute()
        self._program, self._libraries = _find(home)
        self._watcher = Watcher(launcher, spec.candidate, home, _REPORT, _KEPT_BYTES)
        self._patience = Patience(policy.total_seconds)

    def examine(
        self, config: Config, inputs: Mapping[str, Tensor]
    ) -> tuple[Sequence[Finding], CandidateFault | None]:
        """One call of the candidate under each tool, all at once. Raises MachineFault."""
        started = GRANTED.now()
        try:
            seconds = min(self._policy.watch_seconds, self._patience.left_seconds)
        except CandidateFault as fault:
            return [], fault
        with (
            tempfile.TemporaryDirectory() as folder,
            ThreadPoolExecutor(len(TOOLS)) as pool,
        ):
            write_call(Path(folder), self._spec.candidate, self._spec.signature, config, inputs)
            watched = partial(self._watch, folder=Path(folder), seconds=seconds)
            seen = list(pool.map(watched, TOOLS))
        self._patience.spent_seconds += GRANTED.now() - started
        findings = [finding for found, _ in seen for finding in found]
        return findings, next((fault for _, fault in seen if fault), None)

    def _watch(
        self, name: str, folder: Path, seconds: float
    ) -> tuple[Sequence[Finding], CandidateFault | None]:
        returned, said = self._watcher.watch(name, self._argv(name), folder, seconds)
        try:
            found = read_report(returned.report, TOOLS[name], said.memory, self._places)
        except ReportError as error:
            if said.done:
                return [], diagnosis.violation(f"spoiled the report of {name}: {error}")
            found = []
        if found or said.done:
            return found, None
        return [], said.failure(returned, f"under {name}", seconds)

    def _argv(self, name: str) -> tuple[str, ...]:
        options = (f"--injection-path={self._libraries}", "--print-limit=50", "--kill")
        saving = ("--xml", f"--save={_REPORT}", f"--tool={name}", *_OPTIONS.get(name, ()))
        return (str(self._program), *options, *saving)


def _find(home: Path) -> tuple[Path, Path]:
    """The program and its libraries. Raises SpecError if ``home`` lacks them."""
    for program, libraries in _HOMES:
        path = home / program / _PROGRAM
        if path.is_file() and any((home / libraries).glob("libsanitizer-collection.so*")):
            return path, home / libraries
    raise SpecError(f"no {_PROGRAM} in the toolchain for it")
