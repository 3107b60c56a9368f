"""Watches a candidate with another program: NVIDIA's compute-sanitizer."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from base.granted_time import GRANTED
from base.program import CandidateFault, Config, MachineFault, RunnerPolicy
from base.spec import Spec, SpecError
from runners import confinement, diagnosis, hip_errors
from runners.launcher import Launcher
from runners.supervised_run import Returned, SupervisedRun
from terms.reasons import Reason
from torch import Tensor

from sanitize.call_files import BLOCK, INPUTS, write_call
from sanitize.examiner import Patience, SanitizePolicy
from sanitize.findings import Finding
from sanitize.places import Places
from sanitize.reports import Allocation, ReportError, read_report

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
_CALL = "/call"
_REPORT = f"{confinement.TMP}/report.xml"
_KEPT_BYTES = 8 << 20
_SAID = re.compile(r"^kabuild-alone (?P<what>\w+)(?: (?P<rest>.*))?$", re.MULTILINE)
_MEMORY = re.compile(r"(\w{1,32}) ([0-9a-f]{1,16}) (\d{1,15})")
_FAULT = re.compile(r"(\w{1,32}) (-?\d{1,15})")
_SHOWN = 2000


@dataclass(frozen=True)
class _Said:
    """The output of the candidate's process."""

    ready: bool
    done: bool
    memory: tuple[Allocation, ...]
    fault: tuple[str, int] | None
    text: str

    @classmethod
    def read(cls, output: bytes) -> _Said:
        text = output.decode(errors="replace")
        lines = [(match["what"], match["rest"] or "") for match in _SAID.finditer(text)]
        memory = [_MEMORY.fullmatch(rest) for what, rest in lines if what == "memory"]
        faults = [_FAULT.fullmatch(rest) for what, rest in lines if what == "fault"]
        first = next((match for match in faults if match), None)
        shown = "".join(c if c == "\n" or c.isprintable() else "?" for c in _SAID.sub("", text))
        return cls(
            ready=("ready", "") in lines,
            done=("done", "") in lines,
            memory=tuple(Allocation(m[1], int(m[2], 16), int(m[3])) for m in memory if m),
            fault=(first[1], int(first[2])) if first else None,
            text="\n".join(filter(str.strip, shown.splitlines()))[-_SHOWN:],
        )


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
        self._launcher = launcher
        self._places = places
        self._home = sanitizer.absolute()
        self._program, self._libraries = _find(self._home)
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
            watch = partial(self._watch, folder=folder, seconds=seconds)
            seen = list(pool.map(watch, TOOLS))
        self._patience.spent_seconds += GRANTED.now() - started
        findings = [finding for found, _ in seen for finding in found]
        return findings, next((fault for _, fault in seen if fault), None)

    def _watch(
        self, tool: str, folder: str, seconds: float
    ) -> tuple[Sequence[Finding], CandidateFault | None]:
        policy = replace(
            RunnerPolicy.suited(self._spec.candidate, seconds), stderr_bytes=_KEPT_BYTES
        )
        supervised = self._supervised(tool, folder)
        returned = self._launcher.send(supervised, self._spec.candidate, policy, seconds)
        said = _Said.read(returned.said)
        if not said.ready:
            raise MachineFault(f"{tool} did not start the candidate: {said.text}")
        try:
            found = read_report(returned.report, TOOLS[tool], said.memory, self._places)
        except ReportError as error:
            if said.done:
                return [], diagnosis.violation(f"spoiled the report of {tool}: {error}")
            found = []
        if found or said.done:
            return found, None
        return [], _fault(returned, said, f"under {tool}", seconds)

    def _supervised(self, tool: str, folder: str) -> SupervisedRun:
        candidate = self._spec.candidate
        own = (
            confinement.native_runner_path(candidate),
            *(f"{_CALL}/{name}" for name in (BLOCK, INPUTS)),
            confinement.candidate_path(candidate),
            *confinement.library_paths(candidate),
        )
        options = (f"--injection-path={self._libraries}", "--print-limit=50", "--kill")
        saving = ("--xml", f"--save={_REPORT}", f"--tool={tool}", *_OPTIONS.get(tool, ()))
        argv = (str(self._program), *options, *saving, *own)
        return SupervisedRun(argv, ((folder, _CALL), (str(self._home), str(self._home))), _REPORT)


def _find(home: Path) -> tuple[Path, Path]:
    """The program and its libraries. Raises SpecError if ``home`` lacks them."""
    for program, libraries in _HOMES:
        path = home / program / _PROGRAM
        if path.is_file() and any((home / libraries).glob("libsanitizer-collection.so*")):
            return path, home / libraries
    raise SpecError(f"no {_PROGRAM} in the toolchain for it")


def _fault(returned: Returned, said: _Said, doing: str, seconds: float) -> CandidateFault:
    """The failure of a call that is not one of the tool's findings."""
    if returned.status is None:
        return diagnosis.fault(Reason.TIMEOUT, f"gave no answer within {seconds:g} s {doing}")
    if said.fault is None:
        return diagnosis.fault(Reason.CRASH, f"ended its process {doing}", said.text)
    kind, value = said.fault
    if kind == "missing_entry":
        return diagnosis.fault(Reason.MISSING_ENTRY, f"lacks its entry {doing}")
    if kind == "loading":
        return diagnosis.fault(Reason.COMPILE_ERROR, f"does not load {doing}", said.text)
    if kind == "memory":
        return diagnosis.fault(Reason.OUT_OF_MEMORY, f"found no {value} bytes of memory {doing}")
    what = f"returned {hip_errors.described(value)} {doing}"
    return diagnosis.fault(Reason.LAUNCH_ERROR, what, said.text)
