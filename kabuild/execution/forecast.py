"""What a build would do, action by action."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kabuild.base.errors import LoadError
from kabuild.execution.cached import CachedExecutor
from kabuild.execution.inputs import MissingOutputError
from kabuild.execution.prepared import Prepared
from kabuild.model.action import Action
from kabuild.model.graph import ActionGraph
from kabuild.model.result import ActionResult, Settled


@dataclass(frozen=True)
class Forecast:
    """The forecast for one action.

    Attributes:
        settled: its result, if cached.
        prepared: its key and inputs, if they are known and the result is not cached.
        waits_for: the actions that would run before it, if its key depends on their results.
        problem: why it cannot run at all.
    """

    action: Action
    settled: Settled | None = None
    prepared: Prepared | None = None
    waits_for: tuple[str, ...] = ()
    problem: str = ""

    @property
    def word(self) -> str:
        """``cached``, ``would run``, ``not known yet`` or ``cannot run``."""
        if self.settled:
            return "cached"
        if self.prepared:
            return "would run"
        return "cannot run" if self.problem else "not known yet"


def forecast(
    graph: ActionGraph, roots: Iterable[str], executor: CachedExecutor
) -> dict[str, Forecast]:
    """Every action that ``roots`` need, dependencies first.

    The messages behind uncached keys are stored, so that they can be compared with others. Raises
    StoreError.
    """
    found: dict[str, Forecast] = {}
    results: dict[str, ActionResult] = {}
    for action in graph.closure(roots):
        label = str(action.label)
        made = _one(action, found, results, executor)
        found[label] = made
        if made.settled and made.settled.result:
            results[label] = made.settled.result
    return found


def _one(
    action: Action,
    before: dict[str, Forecast],
    results: dict[str, ActionResult],
    executor: CachedExecutor,
) -> Forecast:
    waits = tuple(label for label in action.dependencies() if before[label].settled is None)
    if waits:
        return Forecast(action, waits_for=waits)
    try:
        looked = executor.lookup(action, results)
    except (LoadError, MissingOutputError) as error:
        return Forecast(action, problem=error.message)
    if isinstance(looked, Settled):
        return Forecast(action, settled=looked)
    executor.keep(looked)
    return Forecast(action, prepared=looked)
