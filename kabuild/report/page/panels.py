"""The figures of a page that are of several evaluations, each with its legend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kabuild.report.evaluation import Evaluation
from kabuild.report.leaderboard import leaderboard
from kabuild.report.page import plots
from kabuild.report.page.roofline import draw
from kabuild.report.page.roofs import Machine


@dataclass(frozen=True)
class Key:
    """A line of a legend; ``number`` is the place of its evaluation among all."""

    number: int
    name: str


@dataclass(frozen=True)
class Curves:
    """The chart of fast_p, and the names of evaluations without times."""

    plot: Markup
    keys: tuple[Key, ...]
    without: tuple[str, ...]


@dataclass(frozen=True)
class Shares:
    """Of the roof, by one kernel on each config of a task: the least and the most."""

    least: float
    most: float

    @property
    def text(self) -> str:
        """``61 to 72 %``."""
        least, most = f"{100 * self.least:.0f}", f"{100 * self.most:.0f}"
        return f"{most} %" if least == most else f"{least} to {most} %"


@dataclass(frozen=True)
class Panel:
    """The roofline of one machine; ``rows`` has by task the shares of each key, or None."""

    machine: Machine
    plot: Markup | None
    keys: tuple[Key, ...]
    rows: tuple[tuple[str, tuple[Shares | None, ...]], ...]


def fast_curves(evaluations: Sequence[Evaluation]) -> Curves | None:
    """One for each evaluation with times; None if there are none."""
    found = []
    for number, evaluation in enumerate(evaluations):
        row = next(iter(leaderboard([evaluation])))
        if row.fast:
            found.append(plots.Curve(number, evaluation.name, row.fast))
    if not found:
        return None
    drawn = {item.number for item in found}
    return Curves(
        plot=plots.curves("fast_p by evaluation", found),
        keys=tuple(Key(item.number, item.name) for item in found),
        without=tuple(item.name for i, item in enumerate(evaluations) if i not in drawn),
    )


def panel(evaluations: Sequence[Evaluation], machine: Machine) -> Panel:
    """What was timed on one machine."""
    keys = tuple(Key(number, evaluations[number].name) for number in sorted(machine.numbers))
    tasks = sorted({item.task for item in machine.timed})
    return Panel(
        machine=machine,
        plot=draw(f"roofline of {machine.name}", machine, machine.timed, ways=False),
        keys=keys,
        rows=tuple(
            (task, tuple(_shares(machine, task, key.number) for key in keys)) for task in tasks
        ),
    )


def task_plots(machines: Sequence[Machine], task: str) -> list[tuple[Machine, Markup]]:
    """The roofline of one task on each machine, with the way from its baseline."""
    found = []
    for machine in machines:
        title = f"roofline of {task} on {machine.name}"
        if plot := draw(title, machine, machine.of_task(task), ways=True):
            found.append((machine, plot))
    return found


def _shares(machine: Machine, task: str, number: int) -> Shares | None:
    found = [machine.share(item) for item in machine.of_task(task) if item.number == number]
    return Shares(min(found), max(found)) if found else None
