"""Machines with a store each and a shared cache between them, which build one graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from kabuild.execution import CachedExecutor, CachePolicy, Inputs
from kabuild.execution.shared import SharedCache, Terms
from kabuild.model.action import Action
from kabuild.model.graph import ActionGraph
from kabuild.remote.client import RemoteCache
from kabuild.remote.endpoint import Endpoint
from kabuild.scheduler import BuildResult, FileLeases, Scheduler
from kabuild.store import Store
from tests.testkit.actions import command, gate
from tests.testkit.events import RecordingSink
from tests.testkit.execution import ScriptedStrategy
from tests.testkit.index import NoIndex
from tests.testkit.signers import signer, trusted


def graph() -> ActionGraph:
    """Two tasks of three actions, one of them with an output directory."""
    actions: list[Action] = []
    for task in "ab":
        compiled = gate(f"{task}.compile", outputs=("lib",))
        judged = gate(f"{task}.perf", inputs={"lib": compiled.output("lib")}, requires=(compiled,))
        read = {"verdict": judged.output("verdict.json")}
        actions += [compiled, judged, command(f"{task}.score", inputs=read)]
    return ActionGraph.of(actions)


class Machine:
    """A store of its own, on which one graph is built again and again."""

    def __init__(self, root: Path, endpoint: Endpoint) -> None:
        self.root = root
        self.endpoint = endpoint
        self.warnings: list[str] = []
        self.strategy: ScriptedStrategy | None = None
        self.actions = graph()
        self.connections = 0

    def build(
        self,
        terms: Terms,
        *,
        script: Callable[[ScriptedStrategy], object] = lambda _: None,
        policy: CachePolicy | None = None,
        hermetic: bool = True,
    ) -> BuildResult:
        """One process; which actions it ran is in ``ran`` then."""

        def connect() -> RemoteCache:
            self.connections += 1
            return RemoteCache.connect(self.endpoint)

        with Store.open(self.root) as store:
            strategy = self.strategy = ScriptedStrategy(store.cas, hermetic=hermetic)
            script(strategy)
            with SharedCache(store, terms, connect, warn=self.warnings.append) as shared:
                executor = CachedExecutor(
                    Inputs({}, NoIndex()),
                    store.cas,
                    store.actions,
                    strategy,
                    policy,
                    shared=shared,
                )
                scheduler = Scheduler(executor, RecordingSink(), FileLeases(store.leases), jobs=2)
                return scheduler.run(self.actions)

    @property
    def ran(self) -> int:
        assert self.strategy
        return len(self.strategy.ran)


READER = Terms("grpc://cache", trusted("ci"))
WRITER = replace(READER, signer=signer())
