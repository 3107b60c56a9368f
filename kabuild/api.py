"""kabuild from Python: judge a solution, or thousands of them, and get values back.

    import kabuild

    done = kabuild.evaluate("//tasks/hip2hip/softmax", "my.hip", gates=("compile", "correctness"))
    done.passed, done.speedup, done["correctness"].reason

    with kabuild.Evaluator(platform="cpu", jobs=2) as evaluator:      # keeps interpreters warm
        for done in evaluator.map("//tasks/hip2hip/softmax", sources):  # in the order given
            reward = done.speedup or 0.0

It is the command line's pipeline, store and keys: what one has judged the other finds cached.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from kabuild.base.errors import Reason, UsageError
from kabuild.base.fs import is_inside
from kabuild.execution.host import cpus
from kabuild.loading.request import Request
from kabuild.model.event import Event
from kabuild.model.result import Outcome
from kabuild.model.verdict import GateVerdict, Verdict
from kabuild.pipeline import Summary, execute, load, plan
from kabuild.report.scoreboard import TaskRow
from kabuild.sandbox import Spawner
from kabuild.store import Store

Solution = Path | str | Mapping[str, str]
"""A file or directory (``Path``), a path or the kernel's text (``str``), or texts by name."""


class InfraFailureError(Exception):
    """The machine failed, so that nothing was judged; the text says how."""


@dataclass(frozen=True)
class Evaluation:
    """What the gates said of one solution.

    Attributes:
        task: its label.
        gates: verdicts by gate, in the order of judging; skipped ones too.
        cached: whether nothing had to run.
        seconds: wall time that it took here.
        speedup, score: of the score gate; None where it was not asked for, or gave none.
    """

    task: str
    gates: Mapping[str, GateVerdict] = field(hash=False)
    cached: bool
    seconds: float
    speedup: float | None
    score: float | None

    @property
    def passed(self) -> bool:
        """Whether every gate said PASS."""
        return all(gate.verdict is Verdict.PASS for gate in self.gates.values())

    @property
    def problem(self) -> GateVerdict | None:
        """The gate that decided: the first that did not say PASS."""
        return next((g for g in self.gates.values() if g.verdict is not Verdict.PASS), None)

    def __getitem__(self, gate: str) -> GateVerdict:
        return self.gates[gate]


class Evaluator:
    """Judges solutions in one workspace; may be used from several threads.

    ``jobs`` evaluations run at a time, each on one CPU; measurements exclude each other on
    their device. Fields of ``Request`` can be given as ``flags``: platform, policy, samples.
    """

    def __init__(
        self, workspace: Path | str = ".", *, jobs: int | None = None, **flags: object
    ) -> None:
        self._request = Request(
            patterns=(),
            cwd=Path(workspace).resolve(),
            jobs=1,
            **flags,  # type: ignore[arg-type]
        )
        self._jobs = jobs or cpus()
        self._stop = threading.Event()
        self._store = Store.open()
        self._spawner = Spawner()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._spawner.close()
        self._store.close()

    def evaluate(
        self, task: str, solution: Solution | None = None, *, gates: Sequence[str] = ()
    ) -> Evaluation:
        """Judge one solution of ``task``; without one, what the workspace's agent hands in.

        Raises KabuildError for a request that is wrong, InfraFailureError where the machine failed.
        """
        request = replace(
            self._request,
            patterns=(task,),
            solution=self._path_of(solution),
            gates=tuple(gates),
        )
        planned = plan(request, load(request), self._store)
        summary = execute(
            request, planned, self._store, _Silence(), stop=self._stop, spawner=self._spawner
        )
        return _evaluation(summary)

    def map(
        self, task: str, solutions: Iterable[Solution], *, gates: Sequence[str] = ()
    ) -> Iterator[Evaluation]:
        """Judge many solutions of one task, ``jobs`` at a time; results in the order given."""
        with ThreadPoolExecutor(self._jobs, "evaluation") as pool:
            waiting = [
                pool.submit(self.evaluate, task, solution, gates=gates) for solution in solutions
            ]
            for future in waiting:
                yield future.result()

    def _path_of(self, solution: Solution | None) -> Path | None:
        if solution is None or isinstance(solution, Path):
            return solution
        if isinstance(solution, str):
            if "\n" not in solution:
                return Path(solution)
            return self._written({"kernel": solution}) / "kernel"
        return self._written(solution)

    def _written(self, files: Mapping[str, str]) -> Path:
        folder = self._store.scratch.path("solution")
        for name, text in files.items():
            if not is_inside(name):
                raise UsageError(Reason.BAD_SOLUTION, f"'{name}' is no path inside a solution")
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return folder


def evaluate(
    task: str,
    solution: Solution | None = None,
    *,
    gates: Sequence[str] = (),
    workspace: Path | str = ".",
    **flags: object,
) -> Evaluation:
    """Judge one solution; see ``Evaluator``, which is faster for many."""
    with Evaluator(workspace, **flags) as evaluator:  # type: ignore[arg-type]
        return evaluator.evaluate(task, solution, gates=gates)


class _Silence:
    """Listens to nothing: the values that are returned say it all."""

    def emit(self, event: Event) -> None:
        """Forget ``event``."""


def _evaluation(summary: Summary) -> Evaluation:
    if len(summary.table) != 1:
        labels = ", ".join(row.label.short for row in summary.table)
        raise UsageError(
            Reason.BAD_PATTERN, f"an evaluation is of one task, but these match: {labels}"
        )
    (row,) = summary.table
    _check_judged(summary, row)
    return Evaluation(
        task=row.label.short,
        gates={c.gate: c.settled.verdict for c in row.cells if c.settled.verdict},
        cached=summary.totals.executed == 0,
        seconds=summary.seconds,
        speedup=row.figure("speedup"),
        score=row.figure("score"),
    )


def _check_judged(summary: Summary, row: TaskRow) -> None:
    """A gate without a verdict is a failure of the machine or of a tool, never the solution's."""
    for item in summary.settled.values():
        if item.outcome in {Outcome.INFRA, Outcome.FAILED}:
            raise InfraFailureError(item.account)
    for cell in row.cells:
        if cell.settled.verdict is None:
            raise InfraFailureError(f"{cell.settled.label}: {cell.word}")
