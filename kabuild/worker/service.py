"""A node from start to end: what it offers, and the socket at which it serves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kabuild.base.errors import InfraError, Reason, SandboxError
from kabuild.execution.background_gc import collect_if_due
from kabuild.execution.local import LocalStrategy
from kabuild.loading import Loader
from kabuild.model.platform import CPU
from kabuild.provision import intact
from kabuild.remote.signing import Signer
from kabuild.sandbox import Spawner
from kabuild.sandbox.namespaces import probe
from kabuild.scheduler.resources import FileLeases
from kabuild.store import Store
from kabuild.survey import pool_of
from kabuild.worker.node import Node, Watcher
from kabuild.worker.offer import Offer
from kabuild.worker.server import WorkerServer
from kabuild.worker.stock import stock_of
from kabuild.worker.turns import Turns


@dataclass(frozen=True)
class NodeSettings:
    """How a node serves.

    Attributes:
        socket: where engines reach it.
        platform: offered besides ``cpu``, as ``--platform`` has it.
        devices: numbers of the devices to use; empty means all.
        jobs: CPU slots.
        drain: seconds that running actions have to end when the node is to stop.
        metrics: host and port at which Prometheus finds the node's numbers; None for none.
    """

    socket: Path
    platform: str
    devices: tuple[int, ...]
    jobs: int
    drain: float
    metrics: tuple[str, int] | None = None


def require_sandboxes() -> None:
    """Raise SandboxError if this machine has no sandboxes: a node runs nothing without them."""
    if why := probe():
        raise SandboxError(
            Reason.SANDBOX_UNAVAILABLE,
            f"a node runs everything in sandboxes, and this machine has none: {why}",
            hint="'kabuild doctor' says how to get them",
        )


def serve(
    loader: Loader,
    store: Store,
    settings: NodeSettings,
    signer: Signer,
    *,
    stopped: Callable[[], bool],
    said: Callable[[str], None],
) -> None:
    """Serve until ``stopped`` says so; ``said`` hears what happens, in lines.

    Raises SandboxError, InfraError where no device works or nothing can listen, and as
    ``survey.survey``.
    """
    require_sandboxes()
    workspace = loader.workspace

    def tidy() -> None:
        collect_if_due(store, workspace.cache_size, workspace.root, said)

    stock = stock_of(loader, store, settings.platform, settings.devices, settings.jobs)
    offer, found = stock.offer, stock.offer.devices
    if found.platform != CPU and not found.found:
        raise InfraError(Reason.NO_DEVICE, found.absent or f"no device of {found.platform}")
    for item in stock.lacking:
        said(f"not offered: toolchain {item}")
    pools = {} if found.platform == CPU else {found.platform: [d.lease for d in found.found]}
    with Spawner() as spawner, ExitStack() as stack:
        devices = pool_of(loader.platforms, found)
        strategy = LocalStrategy(store, spawner, warn=said, devices=devices, intact=intact(store))
        turns = Turns(offer.jobs, FileLeases(store.leases), pools)
        watcher = None
        if settings.metrics:
            watcher = stack.enter_context(_measured(offer, turns, *settings.metrics, said))
        node = Node(store, offer, strategy, turns, signer, said=said, watcher=watcher, tidy=tidy)
        with WorkerServer(settings.socket, node, store.cas, drain=settings.drain) as server:
            shown = " and ".join(map(str, offer.platforms.values()))
            said(f"serving {shown} at {settings.socket}, with {len(offer.toolchains)} toolchains")
            server.serve(stopped)


@contextmanager
def _measured(
    offer: Offer, turns: Turns, host: str, port: int, said: Callable[[str], None]
) -> Iterator[Watcher]:
    """Numbers for Prometheus, whose package is imported only here."""
    from kabuild.worker.metrics import Metrics, serving

    metrics = Metrics(offer, turns.load)
    with serving(metrics, host, port) as url:
        said(f"metrics at {url}")
        yield metrics
