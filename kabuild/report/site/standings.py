"""How far a task has come on one machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kabuild.report.page.entries import Entry
from kabuild.report.site.listed import Listed


@dataclass(frozen=True)
class Standing:
    """All results of a task on one machine, in the order of publication.

    ``machine`` and ``agents`` are words for filters; ``where`` is the machine for people.
    """

    task: str
    machine: str
    where: str
    agents: tuple[str, ...]
    entries: tuple[Entry, ...]

    @property
    def family(self) -> str:
        """The directory that the task's package is in."""
        return self.entries[0].result.family

    @property
    def best(self) -> Entry | None:
        """The right one with the highest speedup; None if nothing right was timed."""
        timed = [entry for entry in self.entries if entry.result.speedup]
        return max(timed, key=lambda entry: entry.result.speedup or 0.0, default=None)

    @property
    def right(self) -> int:
        """How many results are right."""
        return sum(entry.result.correct for entry in self.entries)

    @property
    def judged(self) -> int:
        """How many results were judged."""
        return sum(entry.result.judged for entry in self.entries)


def standings(
    items: Sequence[Listed],
    tasks: Mapping[str, Sequence[Sequence[Entry]]],
    agents: Sequence[str],
) -> list[Standing]:
    """By task and machine; ``agents`` has the word of each bundle's agent."""
    found: dict[tuple[str, str], list[Entry]] = {}
    for task, columns in tasks.items():
        for entry in (entry for column in columns for entry in column):
            found.setdefault((task, items[entry.number].machine), []).append(entry)
    return [
        Standing(
            task=task,
            machine=machine,
            where=entries[0].evaluation.machine,
            agents=tuple(dict.fromkeys(agents[entry.number] for entry in entries)),
            entries=tuple(entries),
        )
        for (task, machine), entries in found.items()
    ]
