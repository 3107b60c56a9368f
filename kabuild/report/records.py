"""The best time of each config of each task on each machine: who holds it, and who held it before.

A record stands until a time is surely below it: the two 95 % intervals do not overlap. So neither
luck nor the order of two equal kernels makes one. What was refused, was timed without an interval,
or is known too vaguely holds none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kabuild.model.figure import positive
from kabuild.model.speedup import Speedup
from kabuild.model.task_result import TaskResult
from kabuild.report.evaluation import Evaluation, agent_name

Of = tuple[str, str, str, tuple[str, str]]
"""Task, its digest, config, and machine: what there is one record of."""


_DIGITS = 12


@dataclass(frozen=True)
class Time:
    """The time of a kernel on one config.

    Attributes:
        task_digest: of what the task asks; others with its label may ask less. Empty if unknown.
        machine: a name for people, and the architecture.
        nanoseconds: of one call; ``low`` to ``high`` by the 95 % interval of ``speedup``.
        speedup: over the task's baseline on the same machine at the same time, with its interval.
        agent: its name; ``solution`` for the kernels of a person.
        bundle: SHA-256 of the manifest of the bundle that it is from.
        date: of the day on which it became a record, ``2026-01-31``; empty if unknown.
    """

    task: str
    task_digest: str
    config: str
    machine: tuple[str, str]
    nanoseconds: float
    speedup: Speedup
    agent: str
    bundle: str
    date: str = ""

    @property
    def low(self) -> float:
        """The least that it may have taken."""
        return self._at(self.speedup.high)

    @property
    def high(self) -> float:
        """The most that it may have taken."""
        return self._at(self.speedup.low)

    @property
    def of(self) -> Of:
        """What it may be the record of."""
        return self.task, self.task_digest, self.config, self.machine

    @property
    def vague(self) -> bool:
        """Whether too little is known of it to hold a record."""
        return self.speedup.ends is None or self.speedup.wide

    def beats(self, other: Time) -> bool:
        """Whether it is surely the shorter time."""
        return self.high < other.low

    def _at(self, end: float | None) -> float:
        return self.nanoseconds * self.speedup.value / (end or self.speedup.value)


@dataclass(frozen=True)
class Record:
    """Who holds a config of a task on one machine, and who held it before, oldest first."""

    best: Time
    broken: tuple[Time, ...] = ()

    @property
    def of(self) -> Of:
        """What it is the record of."""
        return self.best.of


Cases = Callable[[Evaluation, TaskResult], Iterable[Mapping[str, Any]]]
"""The timed configs of a result that may hold records."""


def versions(times: Iterable[Time]) -> Mapping[Of, str]:
    """What tells the tasks of these times apart where one label stands for several; else empty."""
    found = {time.of: time for time in times}
    digests: dict[str, set[str]] = {}
    for time in found.values():
        digests.setdefault(time.task, set()).add(time.task_digest)
    several = {task for task, known in digests.items() if len(known) > 1}
    return {
        of: (time.task_digest[:_DIGITS] or "unknown") if time.task in several else ""
        for of, time in found.items()
    }


def machine_of(evaluation: Evaluation) -> tuple[str, str]:
    """What two evaluations share whose times may be compared: a name for people, architecture."""
    return evaluation.machine, evaluation.platform.get("arch", "")


def records(
    evaluations: Iterable[Evaluation],
    cases: Cases = lambda _, result: result.cases,
    *,
    held: Sequence[Record] = (),
    date: str = "",
) -> list[Record]:
    """By task, config and machine; ``evaluations`` in the order in which they were published.

    Without ``cases``, every time may be one. ``held`` are those that stood before; what breaks them
    gets ``date``.
    """
    found = {record.of: [*record.broken, record.best] for record in held}
    for evaluation in evaluations:
        for time in _times(evaluation, cases):
            line = found.setdefault(time.of, [])
            if not line or time.beats(line[-1]):
                line.append(replace(time, date=date))
    return [Record(line[-1], tuple(line[:-1])) for _, line in sorted(found.items())]


def vague_times(
    evaluations: Iterable[Evaluation], cases: Cases, records: Iterable[Record]
) -> list[Time]:
    """Times below those of ``records``, the shortest of each config, that are known too vaguely."""
    best = {record.of: record.best for record in records}
    found: dict[Of, Time] = {}
    for evaluation in evaluations:
        for time in _times(evaluation, cases, vague=True):
            known = best.get(time.of)
            if known is None or time.nanoseconds < known.nanoseconds:
                found[time.of] = best[time.of] = time
    return [time for _, time in sorted(found.items())]


def _times(evaluation: Evaluation, cases: Cases, *, vague: bool = False) -> Iterable[Time]:
    """The shortest time of each config among its trials; of those that are vague, or are not."""
    found: dict[Of, Time] = {}
    for result in evaluation.results:
        if result.correct:
            for time in _of_result(evaluation, result, cases(evaluation, result)):
                if time.vague != vague:
                    continue
                known = found.setdefault(time.of, time)
                if time.nanoseconds < known.nanoseconds:
                    found[time.of] = time
    return found.values()


def _of_result(
    evaluation: Evaluation, result: TaskResult, cases: Iterable[Mapping[str, Any]]
) -> Iterator[Time]:
    for case in cases:
        taken = positive(case, "candidate_ns")
        ends = positive(case, "low"), positive(case, "high")
        measured = Speedup(positive(case, "speedup") or 0.0, *ends)
        if taken and measured.value:
            yield Time(
                task=result.task,
                task_digest=result.evidence.task_digest,
                config=str(case.get("config", "")),
                machine=machine_of(evaluation),
                nanoseconds=taken,
                speedup=measured,
                agent=agent_name(evaluation.request) or "solution",
                bundle=evaluation.digest,
            )
