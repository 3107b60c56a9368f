"""Runs a tool that starts the candidate, and watches one call of it."""

from __future__ import annotations

import dataclasses
import json
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from base.program import MachineFault, Program, RunnerPolicy
from runners import confinement
from runners.launcher import Launcher
from runners.supervised_run import Returned, SupervisedRun

from alone.call_files import BLOCK, INPUTS
from alone.said import Said

CALL = "/call"
"""Where the files of the call are, in the sandbox."""

_TOOLS = str(Path(__file__).resolve().parents[1])
_PYTHON_PROCESS = (
    "import sys; sys.path[0] = sys.argv[1]; "
    "from pyrunner_alone.process import main; main(*sys.argv[2:])"
)
"""In words: a judge of HIP programs alone does not have the package."""


@dataclass(frozen=True)
class Watcher:
    """A tool that watches a candidate, in the candidate's sandbox.

    Attributes:
        home: the directory with everything that the tool needs; it has the same path there.
        report: the path there of what the tool writes.
        kept_bytes: how much of its output and of its report is kept, of each.
    """

    launcher: Launcher
    candidate: Program
    home: Path
    report: str
    kept_bytes: int

    def watch(
        self, name: str, argv: tuple[str, ...], folder: Path, seconds: float
    ) -> tuple[Returned, Said]:
        """Call the candidate once, as the files in ``folder`` say, under the command ``argv``.

        ``name`` is the tool's, for people. Raises MachineFault if it does not start the candidate.
        """
        returned = self.run((*argv, *_process(self.candidate)), folder, seconds)
        said = Said.read(returned.said)
        if not said.ready:
            told = said.text or Said.read(returned.report).text or "it said nothing"
            raise MachineFault(f"{name} did not start the candidate: {told}")
        return returned, said

    def run(self, argv: tuple[str, ...], folder: Path, seconds: float) -> Returned:
        """Run a command in the candidate's sandbox. Raises MachineFault."""
        home = str(self.home.absolute())
        binds = ((str(folder), CALL), (home, home))
        suited = RunnerPolicy.suited(self.candidate, seconds)
        policy = replace(suited, stderr_bytes=self.kept_bytes)
        supervised = SupervisedRun(argv, binds, self.report)
        return self.launcher.send(supervised, self.candidate, policy, seconds)


def _process(candidate: Program) -> tuple[str, ...]:
    """The command of the process that calls the candidate."""
    call = tuple(f"{CALL}/{name}" for name in (BLOCK, INPUTS))
    if candidate.abi != "hip":
        described = json.dumps(dataclasses.asdict(candidate))
        return (sys.executable, "-c", _PYTHON_PROCESS, _TOOLS, *call, described)
    return (
        confinement.native_runner_path(candidate),
        *call,
        confinement.candidate_path(candidate),
        *confinement.library_paths(candidate),
    )
