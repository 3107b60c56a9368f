"""From bundles to the pages of the site."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from jinja2 import Environment
from markupsafe import Markup

from kabuild.bundle.signature import UNSIGNED
from kabuild.report.evaluation import Evaluation
from kabuild.report.exports import by_task, render_json
from kabuild.report.leaderboard import LeaderboardRow, headings, leaderboard
from kabuild.report.page.entries import Entry, entries
from kabuild.report.page.environment import environment
from kabuild.report.page.history import histories
from kabuild.report.page.panels import fast_curves, panel, task_plots
from kabuild.report.page.roofs import Machine, machines
from kabuild.report.records import Record, versions
from kabuild.report.site.addresses import (
    DATA,
    INDEX,
    RECORDS,
    agent_page,
    bundle_file,
    bundle_page,
    slug,
    task_page,
)
from kabuild.report.site.listed import SHORT, Listed, confirmed_records, published_records
from kabuild.report.site.standings import Standing, standings

Columns = Sequence[Sequence[Entry]]
"""The results of one task, by bundle."""

Ranked = Sequence[tuple[int, LeaderboardRow]]
"""Rows of a leaderboard, each with the number of its bundle."""


@dataclass(frozen=True)
class Link:
    """Where the row of a bundle leads, and the words by which filters find it."""

    bundle: str
    agent: str
    machine: str


@dataclass(frozen=True)
class Holder:
    """The best published time of a config, and the record: None until a replay reproduced one.

    ``version`` tells tasks with one label apart.
    """

    best: Record
    record: Record | None
    version: str


class Pages:
    """The pages of a site. What all of them share is made once."""

    def __init__(self, items: Sequence[Listed], title: str) -> None:
        """``items``: each bundle once, in the order of publication."""
        self._items = items
        self._title = title
        self._templates: Environment = environment("kabuild.report.site", scope="site")
        self._templates.filters["slug"] = slug

    def all(self) -> Iterator[tuple[str, bytes]]:
        """Each page by its path below the site's directory."""
        yield INDEX, self._index()
        yield RECORDS, self._records()
        for task in self._tasks:
            yield task_page(task), self._task(task)
        for name, numbers in self._agents.items():
            yield agent_page(name), self._agent(name, numbers)
        for number, item in enumerate(self._items):
            yield bundle_page(item.digest), self._bundle(number)
        yield DATA, render_json(self._evaluations).encode()

    def _index(self) -> bytes:
        firsts = [(i, leaderboard([one])[0]) for i, one in enumerate(self._evaluations)]
        ranked = sorted(firsts, key=lambda pair: _rank(pair[1]))
        return self._render(
            "index.html",
            self._title,
            "",
            **self._ranking(ranked, ""),
            curves=fast_curves(self._evaluations),
            panels=[panel(self._evaluations, machine) for machine in self._machines],
            agents=self._agents,
        )

    def _records(self) -> bytes:
        return self._render("records.html", "Records", "", holders=self._holders)

    def _task(self, task: str) -> bytes:
        found = [one for one in self._standings if one.task == task]
        return self._render(
            "task.html",
            task,
            "../",
            task=task,
            argument=shlex.quote(task),
            standings=found,
            columns=self._tasks[task],
            plots=task_plots(self._machines, task),
            histories=histories(task, self._tasks[task], repeated=False),
            holders=[holder for holder in self._holders if holder.best.best.task == task],
        )

    def _agent(self, name: str, numbers: Sequence[int]) -> bytes:
        ranked = [(i, row) for i in numbers for row in leaderboard([self._evaluations[i]])]
        return self._render(
            "agent.html",
            name,
            "../",
            **self._ranking(ranked, "../"),
            **self._matrix(numbers),
        )

    def _bundle(self, number: int) -> bytes:
        item = self._items[number]
        ranked = [(number, row) for row in leaderboard([item.evaluation])]
        return self._render(
            "bundle.html",
            item.evaluation.name,
            "../",
            item=item,
            **self._ranking(ranked, "../"),
            **self._matrix([number]),
        )

    def _render(self, template: str, heading: str, root: str, **more: object) -> bytes:
        """``root`` leads from the page to the directory of the site."""
        text = self._templates.get_template(template).render(
            title=heading if template == INDEX else f"{heading} - {self._title}",
            heading=heading,
            site=self._title,
            root=root,
            items=self._items,
            evaluations=self._evaluations,
            all_standings=self._standings,
            data=DATA,
            records_page=RECORDS,
            short=SHORT,
            unsigned=UNSIGNED,
            places={item.digest: number for number, item in enumerate(self._items)},
            task_links={task: root + task_page(task) for task in self._tasks},
            agent_links={name: root + agent_page(name) for name in self._agents},
            bundle_links=[root + bundle_page(item.digest) for item in self._items],
            files=[root + bundle_file(item.digest) for item in self._items],
            reruns=[_rerun(item) for item in self._items],
            **more,
        )
        return text.encode(errors="backslashreplace")

    def _ranking(self, ranked: Ranked, root: str) -> dict[str, object]:
        return {
            "ranked": ranked,
            "shares": headings(row for _, row in ranked),
            "several": any(row.trials > row.tasks for _, row in ranked),
            "links": [
                Link(root + bundle_page(item.digest), slug(item.agent), item.machine)
                for item in self._items
            ],
        }

    def _matrix(self, numbers: Sequence[int]) -> dict[str, object]:
        """The tasks of some bundles."""
        tasks: dict[str, tuple[Columns, tuple[Markup, ...]]] = {
            task: (columns, ())
            for task, columns in self._tasks.items()
            if any(columns[number] for number in numbers)
        }
        return {"numbers": numbers, "tasks": tasks}

    @cached_property
    def _evaluations(self) -> list[Evaluation]:
        return [item.evaluation for item in self._items]

    @cached_property
    def _machines(self) -> list[Machine]:
        return machines(self._evaluations)

    @cached_property
    def _tasks(self) -> Mapping[str, Columns]:
        found = by_task(self._evaluations)
        return {task: entries(self._evaluations, c, self._machines) for task, c in found.items()}

    @cached_property
    def _standings(self) -> list[Standing]:
        return standings(self._items, self._tasks, [slug(item.agent) for item in self._items])

    @cached_property
    def _agents(self) -> Mapping[str, Sequence[int]]:
        """The numbers of each agent's bundles."""
        found: dict[str, list[int]] = {}
        for number, item in enumerate(self._items):
            found.setdefault(item.agent, []).append(number)
        return dict(sorted(found.items()))

    @cached_property
    def _holders(self) -> list[Holder]:
        best = published_records(self._items)
        held = {one.of: one for one in confirmed_records(self._items)}
        known = versions(one.best for one in best)
        return [Holder(one, held.get(one.of), known[one.of]) for one in best]


def _rank(row: LeaderboardRow) -> tuple[str, int, float]:
    """Sorted by machine, then by number of solved tasks, then by speedup."""
    return row.machine, -row.tasks, -(row.geomean or 0.0)


def _rerun(item: Listed) -> str:
    return f"kabuild replay {bundle_file(item.digest).rpartition('/')[2]}"
