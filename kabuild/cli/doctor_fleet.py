"""What ``doctor`` and ``fleet status`` find of servers: of a fleet, also its workers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kabuild.base.errors import KabuildError, Reason, RemoteError
from kabuild.base.version import __version__
from kabuild.bundle.difference import difference
from kabuild.cli.doctor_remote import REFUSED, find_cache, find_server, problem
from kabuild.cli.finding import Finding, State
from kabuild.delegation import fleet_of
from kabuild.execution.host import cpus
from kabuild.execution.placement import Placement, Routing
from kabuild.loading import Loader, find_workspace, load_workspace
from kabuild.loading.request import RemoteRequest
from kabuild.model.platform import CPU
from kabuild.sharing import EXECUTOR_FLAG
from kabuild.store import Store
from kabuild.worker.offer import Offered
from kabuild.worker.stock import stock_of

if TYPE_CHECKING:
    from kabuild.execution.fleet import Fleet

_QUEUED = 10.0
"""Seconds that a worker has to take a question."""

_ANY = "any worker"


def find_servers(remote: RemoteRequest) -> Iterator[Finding]:
    """What there is to say of all servers that were named. Raises UsageError for flags."""
    if remote.url:
        yield from find_cache(remote)
    if remote.executor:
        yield from _find_fleet(remote)


def _find_fleet(remote: RemoteRequest) -> Iterator[Finding]:
    """The server of a fleet, then one worker of each pool."""
    with ExitStack() as connection:
        server = yield from find_server(remote, EXECUTOR_FLAG, connection)
        if server is None:
            return
        if not server.capabilities.executes:
            advice = "it is a cache: name it with --remote_cache"
            yield Finding("fleet execution", State.PROBLEM, "the server executes nothing", advice)
            return
        yield Finding("fleet execution", State.OK, "the server executes actions")
    try:
        workspace = load_workspace(find_workspace(Path.cwd()))
    except KabuildError as error:
        advice = "run it in a workspace with [remote] trusted_keys to see its workers"
        yield Finding("fleet workers", State.OPTIONAL, error.message, advice)
        return
    quick = replace(remote, queue_timeout=min(remote.queue_timeout, _QUEUED))
    with Store.open() as store:
        own = _own_toolchains(Loader(workspace), store)
        placement = Placement(pools=workspace.pools)
        try:
            fleet = fleet_of(
                quick,
                Path.cwd(),
                workspace,
                store,
                placement=placement,
                stop=threading.Event(),
            )
        except KabuildError as error:
            yield problem("fleet trust", error)
            return
        with fleet:
            for name, routing in _pools(workspace.pools):
                yield from _find_worker(fleet, name, routing, own)


def _own_toolchains(loader: Loader, store: Store) -> Mapping[str, bytes]:
    """Fingerprints of this machine's toolchains by name."""
    offer = stock_of(loader, store, CPU, (), cpus()).offer
    return {tool.name: tool.fingerprint for tool in offer.toolchains.values()}


def _pools(pools: Mapping[str, Routing]) -> Iterator[tuple[str, Routing]]:
    """Each routing once, under the names of all pools that have it."""
    if not pools:
        yield _ANY, {}
    known: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for name, routing in pools.items():
        known.setdefault(tuple(sorted(routing.items())), []).append(name)
    for items, names in known.items():
        yield ", ".join(names), dict(items)


def _find_worker(
    fleet: Fleet, name: str, routing: Routing, own: Mapping[str, bytes]
) -> Iterator[Finding]:
    """One worker of a pool: what it offers, and what differs from this machine."""
    title = f"pool {name}" if routing else name
    try:
        offered = Offered.from_json(fleet.survey(routing, threading.Event()))
    except KabuildError as error:
        yield problem(title, error, _advice(error))
        return
    except ValueError as error:
        advice = "install the same kabuild on its nodes as here"
        yield Finding(title, State.PROBLEM, f"its answer cannot be read: {error}", advice)
        return
    platforms = ", ".join(
        " ".join([platform.name, *(f"{key}={value}" for key, value in platform.properties)])
        for platform in offered.platforms.values()
    )
    devices = f"; {', '.join(offered.devices)}" if offered.devices else ""
    yield Finding(title, State.OK, f"{offered.jobs} CPU slots; {platforms}{devices}")
    if offered.version != __version__:
        what = f"kabuild {offered.version} there, {__version__} here"
        yield Finding(f"{title} kabuild", State.WARNING, what, "install the same version")
    yield from compare_toolchains(title, offered, own)


def _advice(error: KabuildError) -> str:
    """What helps against a worker that does not answer."""
    if error.hint:
        return error.hint
    status = error.status if isinstance(error, RemoteError) else ""
    if status == "DEADLINE_EXCEEDED":
        return "no worker with these properties is connected, or all are busy: look at the nodes"
    if status in {"PERMISSION_DENIED", "UNAUTHENTICATED"}:
        return REFUSED
    if error.reason is Reason.REMOTE_MISSING:
        return "check the properties in [remote.pools], and those that workers are started with"
    return "see the logs of the server, its worker and its node"


def compare_toolchains(title: str, offered: Offered, own: Mapping[str, bytes]) -> Iterator[Finding]:
    """What an action of this machine, with the fingerprints ``own``, would not find there."""
    alike = []
    for name, fingerprint in sorted(own.items()):
        there = offered.toolchains.get(name)
        if there is None:
            advice = f"on its nodes: kabuild toolchain fetch {name}, and serve again"
            yield Finding(f"{title} {name}", State.WARNING, "not offered there", advice)
        elif there.encode() != fingerprint:
            found = difference(name, there.encode(), fingerprint)
            what = f"differs: {found.text}"
            yield Finding(f"{title} {name}", State.PROBLEM, what, found.remedy)
        else:
            alike.append(name)
    if alike:
        yield Finding(f"{title} toolchains", State.OK, f"the same: {', '.join(alike)}")
