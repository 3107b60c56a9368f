"""A fleet in this process: a server, an engine, and a node whose sandboxes are real or scripted."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kabuild.base.clock import Clock
from kabuild.execution.fleet import Fleet, FleetTerms
from kabuild.execution.inputs import Inputs
from kabuild.execution.placement import Placement
from kabuild.execution.prepared import Prepared, prepare
from kabuild.execution.strategy import Strategy
from kabuild.model.action import Action, Toolchain
from kabuild.model.device import Devices
from kabuild.model.platform import Platform
from kabuild.remote.client import RemoteCache
from kabuild.remote.endpoint import Endpoint
from kabuild.remote.signing import Signer, TrustedKeys
from kabuild.scheduler.resources import FileLeases
from kabuild.store import Store
from kabuild.worker import shim
from kabuild.worker.node import Node, Watcher
from kabuild.worker.offer import Offer
from kabuild.worker.server import WorkerServer
from kabuild.worker.turns import Turns
from tests.testkit.actions import CPU
from tests.testkit.engine import StagingEngine
from tests.testkit.reapi_server import ReapiServer
from tests.testkit.signers import signer, trusted

NODE = "node"
"""Who signs."""


def install_program(directory: Path, socket: Path) -> Path:
    """The program as a node's operator installs it, for the socket ``socket``."""
    directory.mkdir(parents=True, exist_ok=True)
    program = directory / "kabuild-worker-exec"
    text = Path(shim.__file__).read_text()
    text = text.replace("#!/usr/bin/python3", f"#!{sys.executable}", 1)
    program.write_text(text.replace(shim.SOCKET, str(socket)))
    program.chmod(0o755)
    return program


@dataclass
class Fixture:
    """One fleet, and a client with a store of its own."""

    server: ReapiServer
    engine: StagingEngine
    program: Path
    store: Store
    node_store: Store
    node: Node
    said: list[str]
    tidied: list[int]
    clients: ExitStack = field(default_factory=ExitStack)

    def fleet(
        self,
        *,
        keys: TrustedKeys | None = None,
        pools: Mapping[str, Mapping[str, str]] | None = None,
        endpoint: Endpoint | None = None,
        queued: float = 30.0,
        away: float = 10.0,
        clock: Clock | None = None,
    ) -> Fleet:
        where = endpoint or self.server.endpoint(retries=1)
        terms = FleetTerms(
            "grpc://fleet",
            keys or trusted(NODE),
            Placement(pools=pools or {}),
            queued=queued,
            away=away,
            program=str(self.program),
        )
        return self.clients.enter_context(
            Fleet(
                self.store,
                terms,
                lambda: RemoteCache.connect(where),
                clock=clock,
                pause=lambda _: None,
            )
        )

    def prepared(self, action: Action) -> Prepared:
        """The action, with its inputs in the client's store."""
        return prepared_in(self.store, action)


def prepared_in(store: Store, action: Action) -> Prepared:
    inputs = Inputs({}, store.index)
    root = inputs.root(action, {})
    inputs.supply(root, store.cas)
    return prepare(action, root)


@contextmanager
def a_fleet(
    root: Path,
    strategy: Strategy,
    node_store: Store,
    *,
    sign: Signer | None = None,
    platform: Platform = CPU,
    toolchains: Mapping[str, Toolchain] | None = None,
    slots: int = 2,
    watcher: Watcher | None = None,
    clock: Clock | None = None,
    credentials: Any = None,
) -> Iterator[Fixture]:
    """A fleet below ``root`` whose one node runs actions by ``strategy``.

    ``clock`` is the node's; ``credentials`` are gRPC's, for a server with TLS.
    """
    offer = Offer({platform.name: platform}, Devices(), toolchains or {}, slots)
    turns = Turns(slots, FileLeases(node_store.leases), {})
    said: list[str] = []
    tidied: list[int] = []
    node = Node(
        node_store,
        offer,
        strategy,
        turns,
        sign or signer(NODE),
        said=said.append,
        watcher=watcher,
        tidy=lambda: tidied.append(len(said)),
        clock=clock,
    )
    socket = root / "node.sock"
    program = install_program(root / "bin", socket)
    stop = threading.Event()
    with (
        ReapiServer(credentials) as server,
        Store.open(root / "client") as store,
        ExitStack() as stack,
    ):
        worker = stack.enter_context(WorkerServer(socket, node, node_store.cas))
        threading.Thread(target=worker.serve, args=(stop.is_set,), daemon=True).start()
        stack.callback(stop.set)
        engine = StagingEngine(server, root / "staged")
        fixture = Fixture(server, engine, program, store, node_store, node, said, tidied)
        with fixture.clients:
            yield fixture
