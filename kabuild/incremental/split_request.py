"""Splits a request into remembered packages and a rest to build, and merges the results."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from kabuild.base.errors import KabuildError
from kabuild.incremental.recall import Recalled
from kabuild.loading.request import Request
from kabuild.loading.roots import find_workspace
from kabuild.model.label import Pattern, repository_of, show_package
from kabuild.pipeline import Plan, Summary, load, plan
from kabuild.report.scoreboard import count_gates
from kabuild.store import Store


def plan_changed(
    request: Request, recalled: Recalled | None, store: Store
) -> tuple[Plan, Recalled | None]:
    """The plan of everything that is not recalled, or of all if the request cannot be split.

    Raises as ``load`` and ``plan`` do, of the whole request.
    """
    if recalled:
        narrowed = split_request(request, recalled.changed(), find_workspace(request.cwd))
        with suppress(KabuildError):  # errors must refer to the whole request
            if narrowed:
                return plan(narrowed, load(narrowed), store), recalled
    return plan(request, load(request), store), None


def split_request(request: Request, packages: Collection[str], root: Path) -> Request | None:
    """The part of ``request`` for ``packages`` and those below them.

    ``root`` is the workspace's. None if a pattern's meaning depends on other packages, as that of a
    bare name.
    """
    if any(":" not in text and "..." not in text and "//" not in text for text in request.patterns):
        return None
    here = request.cwd.resolve().relative_to(root).as_posix().removeprefix(".")
    patterns = [Pattern.parse(text.rstrip("/"), package=here) for text in request.patterns]
    parts = [part for pattern in patterns for part in _parts(pattern, sorted(packages))]
    return replace(request, patterns=tuple(parts))


def merge(summary: Summary, recalled: Recalled) -> Summary:
    """``summary`` with the results and counts of the packages that were not built."""
    known = list(recalled.tasks())
    table = tuple(sorted((*summary.table, *known), key=lambda result: result.label))
    own = {result.label.package for result in table}
    again = sum(label.package not in own for label in summary.settled)
    actions = recalled.own_actions() + recalled.memory.actions - again
    counts = replace(summary.totals, cached=summary.totals.cached + actions)
    gates = (gate for result in known for gate in result.gates.values())
    return replace(summary, table=table, totals=count_gates(gates, counts))


def _parts(pattern: Pattern, packages: Sequence[str]) -> list[str]:
    sign = "-" if pattern.negative else ""
    name = f"*.{pattern.part}" if pattern.part else "all"
    if pattern.recursive:
        inner = [path for path in packages if _is_below(path, pattern.package)]
        if inner:
            return [f"{sign}{show_package(path)}/...:{name}" for path in inner]
    if any(_is_below(pattern.package, path) for path in packages):
        below = "/..." if pattern.recursive else ""
        last = pattern.label.name if pattern.label else name
        return [f"{sign}{show_package(pattern.package)}{below}:{last}"]
    return []


def _is_below(path: str, above: str) -> bool:
    if not above:
        return not repository_of(path)
    return path == above or path.startswith(f"{above}/")
