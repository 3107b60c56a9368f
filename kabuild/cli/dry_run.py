"""What ``why`` and ``aquery`` share: a plan that is shown and not executed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from kabuild.base.errors import NoTestsError
from kabuild.cli.flags import (
    KeyFlags,
    PolicyFlags,
    SaltFlags,
    SolverFlags,
    TargetFlags,
    TrialFlags,
    WhereFlags,
)
from kabuild.cli.session import builder
from kabuild.execution.forecast import Forecast
from kabuild.loading.request import Request
from kabuild.pipeline import Plan
from kabuild.store import Store

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class PlanFlags(TargetFlags, WhereFlags, SolverFlags, TrialFlags, PolicyFlags, SaltFlags, KeyFlags):
    """The options that change a plan. Nothing runs, so options about running are absent."""


def look_ahead(request: Request, use: Callable[[Plan, dict[str, Forecast], Store, Path], T]) -> T:
    """Forecast the request, as ``test`` would judge it, else as ``build`` would make it.

    ``use`` gets the plan, a forecast for each action, the store and ``out/``.
    """
    with builder() as builds:
        try:
            planned = builds.plan(request)
        except NoTestsError:
            request = replace(request, judge=False)
            planned = builds.plan(request)
        out = planned.loaded.workspace.root / "out"
        return use(planned, builds.foresee(request, planned), builds.store, out)
