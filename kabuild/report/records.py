"""The best time that anybody published, for each config of each task, on each machine.

A record stands until a time is surely below it: the two 95 % intervals do not overlap. So neither
luck nor the order of two equal kernels makes one. What was refused, was timed without an interval,
or is known too vaguely holds none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from kabuild.model.figure import positive
from kabuild.model.speedup import Speedup
from kabuild.model.task_result import TaskResult
from kabuild.report.evaluation import Evaluation


@dataclass(frozen=True)
class Best:
    """The time of a kernel on one config.

    Attributes:
        number: the place of its evaluation among all.
        nanoseconds: of one call; ``low`` to ``high`` by the 95 % interval of ``speedup``.
        speedup: over the task's baseline on the same machine at the same time, with its interval.
    """

    number: int
    evaluation: Evaluation
    result: TaskResult
    config: str
    nanoseconds: float
    speedup: Speedup

    @property
    def low(self) -> float:
        """The least that it may have taken."""
        return self._at(self.speedup.high)

    @property
    def high(self) -> float:
        """The most that it may have taken."""
        return self._at(self.speedup.low)

    def beats(self, other: Best) -> bool:
        """Whether it is surely the shorter time."""
        return self.high < other.low

    def _at(self, end: float | None) -> float:
        return self.nanoseconds * self.speedup.value / (end or self.speedup.value)


@dataclass(frozen=True)
class Record:
    """Who holds a config of a task on one machine, and who held it before, oldest first.

    ``where`` is the machine, as ``machine_of`` has it.
    """

    task: str
    config: str
    where: tuple[str, str]
    best: Best
    broken: tuple[Best, ...]

    @property
    def machine(self) -> str:
        """For people."""
        return self.where[0]

    @property
    def of(self) -> tuple[str, str, tuple[str, str]]:
        """What it is a record of."""
        return self.task, self.config, self.where


def machine_of(evaluation: Evaluation) -> tuple[str, str]:
    """What two evaluations share whose times may be compared: a name for people, architecture."""
    return evaluation.machine, evaluation.platform.get("arch", "")


Counts = Callable[[int, TaskResult], bool]
"""Whether a result of the evaluation with that place may hold a record."""


def records(evaluations: Sequence[Evaluation], counts: Counts | None = None) -> list[Record]:
    """By task, config and machine; ``evaluations`` in the order in which they were published.

    Without ``counts``, every result may hold one.
    """
    found: dict[tuple[str, str, tuple[str, str]], list[Best]] = {}
    for number, evaluation in enumerate(evaluations):
        for best in _times(number, evaluation, counts):
            where = (best.result.task, best.config, machine_of(evaluation))
            held = found.setdefault(where, [best])
            if best.beats(held[-1]):
                held.append(best)
    return [
        Record(*of, held[-1], tuple(held[:-1]))
        for of, held in sorted(found.items(), key=lambda item: item[0])
    ]


def _times(number: int, evaluation: Evaluation, counts: Counts | None) -> Iterable[Best]:
    """The shortest time of each config among its trials."""
    found: dict[tuple[str, str], Best] = {}
    for result in evaluation.results:
        if not result.correct or not (counts is None or counts(number, result)):
            continue
        for best in _of_result(number, evaluation, result):
            where = (result.task, best.config)
            if where not in found or best.nanoseconds < found[where].nanoseconds:
                found[where] = best
    return found.values()


def _of_result(number: int, evaluation: Evaluation, result: TaskResult) -> Iterator[Best]:
    for case in result.cases:
        taken = positive(case, "candidate_ns")
        ends = positive(case, "low"), positive(case, "high")
        measured = Speedup(positive(case, "speedup") or 0.0, *ends)
        if taken and measured.ends and not measured.wide:
            config = str(case.get("config", ""))
            yield Best(number, evaluation, result, config, taken, measured)
