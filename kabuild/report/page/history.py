"""The speedups of one task on one machine, in the order of publication, as inline SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from kabuild.model.speedup import Speedup
from kabuild.report.evaluation import agent_name
from kabuild.report.page.entries import Entry
from kabuild.report.page.svg import WIDTH, Log, dot, drawing, line, path, series, text
from kabuild.report.records import machine_of

_LEFT, _RIGHT, _TOP, _BOTTOM, _HEIGHT = 60, 24, 16, 34, 240


@dataclass(frozen=True)
class Step:
    """One published kernel; ``number`` is the place of its evaluation, whose colour it has."""

    number: int
    name: str
    speedup: Speedup

    @property
    def ends(self) -> tuple[float, float]:
        """Its interval; without width where that is unknown."""
        return self.speedup.ends or (self.speedup.value, self.speedup.value)


@dataclass(frozen=True)
class History:
    """The published kernels of a task on one machine; ``where`` is its name for people."""

    where: str
    plot: Markup
    steps: tuple[Step, ...]


def histories(task: str, columns: Sequence[Sequence[Entry]], *, repeated: bool) -> list[History]:
    """Of each machine with two evaluations or more that have right and timed kernels.

    With ``repeated``, only where two of them are of one agent: others stand side by side, as do
    the kernels of persons.
    """
    found: dict[tuple[str, str], list[Entry]] = {}
    for entry in (entry for column in columns for entry in column if entry.result.measured):
        found.setdefault(machine_of(entry.evaluation), []).append(entry)
    shown = []
    for (where, _), kernels in found.items():
        agents = {
            entry.number: agent_name(entry.evaluation.request) or entry.number for entry in kernels
        }
        if len(agents) < 2 or (repeated and len(agents) == len({*agents.values()})):
            continue
        steps = tuple(
            Step(entry.number, entry.evaluation.name, entry.result.measured)
            for entry in kernels
            if entry.result.measured
        )
        shown.append(History(where, history(f"speedups of {task} on {where}", steps), steps))
    return shown


def history(title: str, steps: Sequence[Step]) -> Markup:
    """Each with its 95 % interval, and the best so far as a line."""
    low = min(1.0, *(step.ends[0] for step in steps)) / 1.1
    high = max(1.0, *(step.ends[1] for step in steps)) * 1.1
    ys = Log(low, high, _HEIGHT - _BOTTOM, _TOP)
    gap = (WIDTH - _LEFT - _RIGHT) / len(steps)
    xs = [_LEFT + gap * (place + 0.5) for place in range(len(steps))]
    parts = []
    for tick in ys.ticks():
        parts += [
            line("grid", _LEFT, ys(tick), WIDTH - _RIGHT, ys(tick)),
            text("name", _LEFT - 8, ys(tick) + 4, f"{tick:g}x"),
        ]
    parts.append(line("one", _LEFT, ys(1.0), WIDTH - _RIGHT, ys(1.0)))
    best = [max(step.speedup.value for step in steps[: end + 1]) for end in range(len(steps))]
    corners = [(xs[0], ys(best[0]))]
    for x, value in zip(xs[1:], best[1:], strict=True):
        corners += [(x, corners[-1][1]), (x, ys(value))]
    corners.append((WIDTH - _RIGHT, corners[-1][1]))
    parts.append(path("best", corners, "the best so far"))
    for place, (x, step) in enumerate(zip(xs, steps, strict=True), start=1):
        kind = series(step.number)
        ends = [ys(end) for end in step.ends]
        parts += [
            path(kind, [(x, ends[0]), (x, ends[1])], step.name),
            dot(f"{kind} full", x, ys(step.speedup.value), f"{step.name}: {step.speedup}"),
            text("tick", x, _HEIGHT - 12, str(place)),
        ]
    return drawing(title, _HEIGHT, parts)
