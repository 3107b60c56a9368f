"""From evaluations to the page."""

from __future__ import annotations

from collections.abc import Sequence

from kabuild.report.evaluation import Evaluation
from kabuild.report.exports import by_task
from kabuild.report.leaderboard import headings, leaderboard
from kabuild.report.page.entries import entries
from kabuild.report.page.environment import environment
from kabuild.report.page.history import histories
from kabuild.report.page.panels import fast_curves, panel, task_plots
from kabuild.report.page.roofs import machines


def render_page(evaluations: Sequence[Evaluation], *, title: str) -> str:
    """One HTML file."""
    timed = machines(evaluations)
    ranked = [(i, row) for i, item in enumerate(evaluations) for row in leaderboard([item])]
    columns = {
        task: entries(evaluations, found, timed) for task, found in by_task(evaluations).items()
    }
    return (
        environment()
        .get_template("page.html")
        .render(
            title=title,
            evaluations=evaluations,
            ranked=ranked,
            shares=headings(row for _, row in ranked),
            several=any(row.trials > row.tasks for _, row in ranked),
            curves=fast_curves(evaluations),
            panels=[panel(evaluations, machine) for machine in timed],
            tasks={task: (found, task_plots(timed, task)) for task, found in columns.items()},
            histories={
                task: histories(task, found, repeated=True) for task, found in columns.items()
            },
        )
    )
