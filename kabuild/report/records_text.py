"""Records as text: the times of one machine below each other, by task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from kabuild.base.printing import in_line
from kabuild.report.records import Of, Time
from kabuild.report.site.listed import SHORT
from kabuild.report.table import text_table
from kabuild.report.times import nanoseconds

_HEADS = ("config", "time", "speedup, 95 % interval", "agent", "bundle", "date", "")


def times_text(
    title: str, times: Sequence[Time], known: Mapping[Of, str], notes: Iterable[str]
) -> Iterator[str]:
    """One table for each machine. Names make no lines, and act on no terminal.

    Args:
        known: what tells tasks with one label apart; see ``versions``.
        notes: what to say of each time.
    """
    rows = [(time, (*_row(time), in_line(note))) for time, note in zip(times, notes, strict=True)]
    machines = sorted({time.machine for time in times})
    for machine in machines:
        here = [(time, row) for time, row in rows if time.machine == machine]
        heads, *lines = text_table([_HEADS, *(row for _, row in here)], right=(1,)).split("\n")
        yield "\n".join(
            (
                in_line(f"{title} on {machine[0]}"),
                f"  {heads}",
                *_by_task([time for time, _ in here], lines, known),
            )
        )


def holder(time: Time) -> str:
    """Who holds a record, and by what time."""
    return f"{nanoseconds(time.nanoseconds)} by {time.agent} ({time.bundle[:SHORT]})"


def _by_task(times: Sequence[Time], lines: Sequence[str], known: Mapping[Of, str]) -> Iterator[str]:
    """The lines, each task's below its name."""

    def task(pair: tuple[Time, str]) -> str:
        time, _ = pair
        return f"{time.task} ({known[time.of]})" if known[time.of] else time.task

    for name, group in groupby(zip(times, lines, strict=True), key=task):
        yield in_line(name)
        yield from (f"  {line}" for _, line in group)


def _row(time: Time) -> tuple[str, ...]:
    figures = (nanoseconds(time.nanoseconds), str(time.speedup))
    who = (time.agent, time.bundle[:SHORT], time.date)
    return tuple(map(in_line, (time.config, *figures, *who)))
