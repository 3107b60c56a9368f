"""What ``why`` and ``aquery`` share: a plan that is looked at and not carried out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from kabuild.base.errors import NoTestsError
from kabuild.execution.forecast import Forecast
from kabuild.loading.request import Request
from kabuild.pipeline import Plan, foresee, load, plan
from kabuild.store import Store

T = TypeVar("T")


def look_ahead(request: Request, use: Callable[[Plan, dict[str, Forecast], Store, Path], T]) -> T:
    """Foresee what was asked for, as ``test`` would judge it, else as ``build`` would make it.

    ``use`` gets the plan, what would become of each action, the store and ``out/``.
    """
    loaded = load(request)
    with Store.open() as store:
        try:
            planned = plan(request, loaded, store)
        except NoTestsError:
            request = replace(request, judge=False)
            planned = plan(request, loaded, store)
        out = loaded.workspace.root / "out"
        return use(planned, foresee(request, planned, store), store, out)
