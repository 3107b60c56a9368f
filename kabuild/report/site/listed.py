"""A bundle on the site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kabuild.model.task_result import TaskResult
from kabuild.report.beside import named_apart
from kabuild.report.evaluation import Evaluation, agent_name
from kabuild.report.records import Record, Time, machine_of, records, vague_times
from kabuild.report.replays import Replay
from kabuild.report.site.addresses import slug

SHORT = 12
"""Digits of a digest where people read it."""


@dataclass(frozen=True)
class Listed:
    """One bundle, with what is known of it beside its evaluation.

    Attributes:
        file: a copy of the bundle, which becomes a part of the site; so do ``beside``, by suffix:
            copies of its signature and its replay, if there are any.
        source: the bundle as its user named it.
        replay: what came of running it again, if somebody did.
        foreign: judging code in it that this kabuild does not ship.
        left_out: tasks without a verdict of a usual gate that nothing stopped, by gate.
        signer: the key whose signature of ``file`` was checked; empty if it is unsigned.
    """

    evaluation: Evaluation
    file: Path
    source: Path
    beside: Mapping[str, Path]
    replay: Replay | None
    foreign: Sequence[str]
    left_out: Mapping[str, Sequence[str]]
    signer: str = ""

    @property
    def digest(self) -> str:
        """SHA-256 of its manifest."""
        return self.evaluation.digest

    @property
    def agent(self) -> str:
        """The name of its agent; ``solution`` for the kernels of a person."""
        return agent_name(self.evaluation.request) or "solution"

    @property
    def machine(self) -> str:
        """A word that stands for its machine in filters."""
        return slug(" ".join(machine_of(self.evaluation)))

    @property
    def size(self) -> int:
        """Of the bundle, in bytes. Raises ``OSError``."""
        return self.file.stat().st_size

    def confirmed(self, result: TaskResult) -> Sequence[Mapping[str, Any]]:
        """The timed configs of ``result`` as a replay confirms them.

        Nothing where none did, or a usual gate was left out, which might have refused the kernel.
        """
        lacking = {task for tasks in self.left_out.values() for task in tasks}
        if self.replay is None or result.label.short in lacking:
            return ()
        return self.replay.confirmed(result)

    def published(self, result: TaskResult) -> Sequence[Mapping[str, Any]]:
        """The timed configs of ``result``: confirmed if they are, else as they are claimed."""
        return self.confirmed(result) or result.cases


def confirmed_records(
    items: Sequence[Listed], held: Sequence[Record] = (), date: str = ""
) -> list[Record]:
    """The records of bundles in the order of publication: only what replays confirm."""
    known = {item.digest: item for item in items}
    evaluations = [item.evaluation for item in items]
    return records(
        evaluations, lambda one, result: known[one.digest].confirmed(result), held=held, date=date
    )


def published_records(items: Sequence[Listed], held: Sequence[Record] = ()) -> list[Record]:
    """The same if what is published without a replay counted, too."""
    known = {item.digest: item for item in items}
    evaluations = [item.evaluation for item in items]
    return records(evaluations, lambda one, result: known[one.digest].published(result), held=held)


def times_too_vague(items: Sequence[Listed], records: Sequence[Record]) -> list[Time]:
    """The times of bundles that are shorter than ``records``, but for their intervals."""
    known = {item.digest: item for item in items}
    evaluations = [item.evaluation for item in items]
    return vague_times(
        evaluations, lambda one, result: known[one.digest].published(result), records
    )


def listed_once(items: Sequence[Listed]) -> list[Listed]:
    """Each bundle once, with names that differ: of agent, machine and, where alike, digest."""
    found: dict[str, Listed] = {}
    for item in items:
        found.setdefault(item.digest, item)
    named = named_apart(
        [
            replace(item.evaluation, name=item.agent, source=item.digest[:SHORT])
            for item in found.values()
        ]
    )
    return [
        replace(item, evaluation=replace(one, source=""))
        for item, one in zip(found.values(), named, strict=True)
    ]
