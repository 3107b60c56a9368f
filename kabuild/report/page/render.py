"""From evaluations to the page."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kabuild.base.printing import escaped
from kabuild.report.evaluation import Evaluation
from kabuild.report.exports import by_task, share, times_faster
from kabuild.report.judgement import unjudged
from kabuild.report.leaderboard import headings, leaderboard
from kabuild.report.page.entries import entries, in_order
from kabuild.report.page.panels import fast_curves, panel, task_plots
from kabuild.report.page.roofs import machines
from kabuild.report.page.svg import anchor, quantity, series

_TEXT = 20000


def _shown(value: object) -> object:
    """Text of others without what acts or hides, such as marks that turn a line of code around."""
    plain = isinstance(value, str) and not isinstance(value, Markup)
    return escaped(value) if plain else value  # type: ignore[arg-type]


def render_page(evaluations: Sequence[Evaluation], *, title: str) -> str:
    """One HTML file. What comes from kernels and agents is text in it and never code."""
    environment = Environment(
        loader=PackageLoader("kabuild.report.page"),
        autoescape=True,
        finalize=_shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "share": share,
        "times": times_faster,
        "nanoseconds": nanoseconds,
        "anchor": anchor,
        "series": series,
        "quantity": quantity,
        "in_order": in_order,
        "unjudged": unjudged,
        "count": count,
        "clip": lambda text: text if len(text) <= _TEXT else f"{text[:_TEXT]}\n[...]",
        "pretty": lambda value: json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True),
    }
    style = _source(environment, "style.css")
    script = _source(environment, "script.js")
    timed = machines(evaluations)
    ranked = [(i, row) for i, item in enumerate(evaluations) for row in leaderboard([item])]
    return environment.get_template("page.html").render(
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
        style=Markup(style),  # noqa: S704 - ours
        script=Markup(script),  # noqa: S704 - ours
        style_hash=_hash(style),
        script_hash=_hash(script),
    )


def nanoseconds(value: float | None) -> str:
    """A time in a unit that fits."""
    if value is None:
        return "-"
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.0f} ns"


def count(number: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _source(environment: Environment, name: str) -> str:
    assert environment.loader
    return environment.loader.get_source(environment, name)[0]


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
