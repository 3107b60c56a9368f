"""The fleet of a build, from flags and WORKSPACE.toml; checked before anything runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kabuild.base.errors import Reason, UsageError
from kabuild.execution.placement import Placement, kinds
from kabuild.loading.request import RemoteRequest, Request
from kabuild.loading.workspace import Workspace
from kabuild.model.graph import ActionGraph
from kabuild.sharing import (
    EXECUTOR_FLAG,
    endpoint_of,
    require_packages,
    require_sandbox,
    trusted_of,
)
from kabuild.store.store import Store

if TYPE_CHECKING:
    from kabuild.execution.fleet import Fleet
    from kabuild.remote.client import RemoteCache


@contextmanager
def delegation(
    request: Request,
    workspace: Workspace,
    graph: ActionGraph,
    store: Store,
    *,
    own_salt: str,
    stop: threading.Event,
) -> Iterator[Fleet | None]:
    """The fleet that ``request`` names, if any.

    Nothing is connected before something has to run. ``own_salt`` is a salt that the workspace does
    not tell; what knows it runs here. Raises as ``sharing.sharing``, and UsageError if the
    workspace has pools, but none for an action.
    """
    remote = request.remote
    if remote is None or not remote.executor:
        yield None
        return
    private: frozenset[str] = frozenset()
    if own_salt:
        from kabuild.execution.confidential import knowing

        private = knowing(graph, own_salt)
    placement = Placement(private, workspace.pools)
    _require_pools(placement, graph, workspace)
    require_sandbox(request, "a fleet")
    fleet = fleet_of(remote, request.cwd, workspace, store, placement=placement, stop=stop)
    with fleet:
        yield fleet


def fleet_of(
    remote: RemoteRequest,
    cwd: Path,
    workspace: Workspace,
    store: Store,
    *,
    placement: Placement,
    stop: threading.Event,
) -> Fleet:
    """The fleet that flags name, not connected yet. Raises UsageError, LoadError and InfraError."""
    endpoint = endpoint_of(remote, cwd, EXECUTOR_FLAG)
    trusted = trusted_of(workspace, EXECUTOR_FLAG)
    require_packages(EXECUTOR_FLAG)
    from kabuild.execution.fleet import Fleet, FleetTerms
    from kabuild.execution.wire import PROGRAM

    def connect() -> RemoteCache:
        """Only now is gRPC imported."""
        from kabuild.remote.client import RemoteCache

        return RemoteCache.connect(endpoint, stopped=stop.is_set)

    terms = FleetTerms(
        name=endpoint.shown,
        trusted=trusted,
        placement=placement,
        queued=remote.queue_timeout,
        away=remote.timeout,
        program=remote.program or PROGRAM,
    )
    return Fleet(store, terms, connect)


def _require_pools(placement: Placement, graph: ActionGraph, workspace: Workspace) -> None:
    """Refuse a graph with an action that no pool is for."""
    for action in graph:
        if placement.routing(action) is None and not placement.stays(action):
            known = ", ".join(f'"{name}"' for name in placement.pools)
            first, *_ = kinds(action)
            raise UsageError(
                Reason.BAD_FLAG,
                f"{EXECUTOR_FLAG}: no pool of [remote.pools] takes '{first}', which {action.label} "
                "needs",
                position=workspace.position("remote", "pools"),
                hint=f"it has: {known}",
            )
