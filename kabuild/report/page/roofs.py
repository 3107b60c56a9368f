"""How near kernels come to the best rates that were seen on their machine.

No roof is taken from a data sheet: nothing in an evaluation says what a device could reach. The
roofs are the highest rates of memory and of arithmetic that any kernel, candidate or baseline,
reached on that machine, and each says which one it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kabuild.model.figure import positive
from kabuild.model.task_result import TaskResult
from kabuild.report.evaluation import Evaluation
from kabuild.report.page.svg import quantity


@dataclass(frozen=True)
class Timed:
    """A kernel on one config.

    Attributes:
        number, evaluation: the place of its evaluation among all, and its name.
        task, trial, config: which.
        moved, done: bytes of inputs and outputs, each counted once, and operations of one call;
            the latter 0 if no task declares them.
        seconds: of one call; ``before`` those of the baseline.
        cold: whether its data were in no cache.
    """

    number: int
    evaluation: str
    task: str
    trial: int
    config: str
    moved: float
    done: float
    seconds: float
    before: float
    cold: bool

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.task.removeprefix('//')} {self.config}"

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.done / self.moved


@dataclass(frozen=True)
class Roof:
    """The best rate that was seen: per second, of bytes or of operations, and whose it was."""

    rate: float
    unit: str
    whose: str

    @property
    def text(self) -> str:
        """``4.37 TB/s``."""
        return quantity(self.rate, self.unit)


@dataclass(frozen=True)
class Machine:
    """What was timed on one machine, below its roofs.

    ``arithmetic`` is None if no task declares its operations. ``cold`` says whether the roof
    of ``memory`` is what kernels reached whose data were in no cache.
    """

    name: str
    timed: tuple[Timed, ...]
    memory: Roof
    arithmetic: Roof | None
    cold: bool

    @cached_property
    def numbers(self) -> frozenset[int]:
        """The places of the evaluations that timed something here."""
        return frozenset(item.number for item in self.timed)

    def share(self, item: Timed) -> float:
        """Of what the nearer roof admits at its intensity."""
        arithmetic = item.done / item.seconds / self.arithmetic.rate if self.arithmetic else 0.0
        return max(item.moved / item.seconds / self.memory.rate, arithmetic)

    def of_task(self, task: str) -> Sequence[Timed]:
        """What was timed of one task, by all evaluations."""
        return self._by_task.get(task, ())

    @cached_property
    def _by_task(self) -> Mapping[str, Sequence[Timed]]:
        found: dict[str, list[Timed]] = {}
        for item in self.timed:
            found.setdefault(item.task, []).append(item)
        return found


def machines(evaluations: Sequence[Evaluation]) -> list[Machine]:
    """Each on which something was timed, in the order of the evaluations."""
    found: dict[tuple[str, str], list[Timed]] = {}
    for number, evaluation in enumerate(evaluations):
        where = (evaluation.machine, evaluation.platform.get("arch", ""))
        for result in evaluation.results:
            found.setdefault(where, []).extend(_timed(number, evaluation.name, result))
    return [_machine(name, timed) for (name, _), timed in found.items() if timed]


def _machine(name: str, timed: Sequence[Timed]) -> Machine:
    cold = [item for item in timed if item.cold]
    arithmetic = _best(timed, "FLOP/s", lambda item: item.done)
    return Machine(
        name=name,
        timed=tuple(timed),
        memory=_best(cold or timed, "B/s", lambda item: item.moved),
        arithmetic=arithmetic if arithmetic.rate else None,
        cold=bool(cold),
    )


def _best(timed: Sequence[Timed], unit: str, amount: Callable[[Timed], float]) -> Roof:
    seen = [(amount(item) / item.seconds, f"{item.name} of {item.evaluation}") for item in timed]
    seen += [(amount(item) / item.before, f"the baseline of {item.name}") for item in timed]
    rate, whose = max(seen, key=lambda pair: pair[0])
    return Roof(rate, unit, whose)


def _timed(number: int, evaluation: str, result: TaskResult) -> Iterator[Timed]:
    """The figures of a result that count: none if it is refused, since its times may be forged."""
    if not result.correct:
        return
    for case in result.cases:
        moved, after, before = (
            positive(case, name) for name in ("bytes", "candidate_ns", "baseline_ns")
        )
        if moved and after and before:
            yield Timed(
                number=number,
                evaluation=evaluation,
                task=result.task,
                trial=result.trial,
                config=str(case.get("config", "")),
                moved=moved,
                done=positive(case, "flops") or 0.0,
                seconds=after / 1e9,
                before=before / 1e9,
                cold=case.get("cold") is True,
            )
