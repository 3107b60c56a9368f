"""From evaluations to the page."""

from __future__ import annotations

from collections.abc import Sequence

from kabuild.report.evaluation import Evaluation
from kabuild.report.exports import by_task
from kabuild.report.leaderboard import headings, leaderboard
from kabuild.report.page.entries import entries
from kabuild.report.page.environment import environment
from kabuild.report.page.panels import fast_curves, panel, task_plots
from kabuild.report.page.roofs import machines


def render_page(evaluations: Sequence[Evaluation], *, title: str) -> str:
    """One HTML file."""
    timed = machines(evaluations)
    ranked = [(i, row) for i, item in enumerate(evaluations) for row in leaderboard([item])]
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
            tasks={
                task: (entries(evaluations, found, timed), task_plots(timed, task))
                for task, found in by_task(evaluations).items()
            },
        )
    )
