"""Strategies, workers and leases that do what a test's script says, without threads."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from kabuild.base.clock import Clock
from kabuild.base.errors import Interrupted, Reason
from kabuild.execution.prepared import Prepared
from kabuild.execution.strategy import Execution
from kabuild.model.action import VERDICT_FILE
from kabuild.model.result import ActionResult, OutputFile
from kabuild.model.verdict import GateVerdict, Verdict
from kabuild.scheduler.workers import Executor, Run
from kabuild.store.cas import Cas

Behaviour = Callable[[Prepared], Execution]


class ScriptedStrategy:
    """Runs nothing. By default every output is made of the key, and every gate passes.

    ``behaviours`` overrides that by label; ``ran`` has the labels in the order they ran.
    """

    def __init__(self, cas: Cas, *, hermetic: bool = True) -> None:
        self.behaviours: dict[str, Behaviour] = {}
        self.ran: list[str] = []
        self._cas = cas
        self._hermetic = hermetic

    def hermetic(self) -> bool:
        return self._hermetic

    def run(self, prepared: Prepared, cancel: Event) -> Execution:
        if cancel.is_set():
            raise Interrupted(Reason.INTERRUPTED, "stopped")
        label = str(prepared.action.label)
        self.ran.append(label)
        return self.behaviours.get(label, self.succeed)(prepared)

    def succeed(self, prepared: Prepared) -> Execution:
        """Make every declared output, and pass."""
        return self.judge(Verdict.PASS)(prepared)

    def judge(self, verdict: Verdict, reason: str = "") -> Behaviour:
        """A gate that says ``verdict``; other outputs are made all the same."""

        def behave(prepared: Prepared) -> Execution:
            files = []
            for path in prepared.action.outputs:
                data = f"{prepared.key} {path}".encode()
                if path == VERDICT_FILE:
                    data = GateVerdict(prepared.action.gate, verdict, reason).to_json()
                files.append(OutputFile(path, self._cas.put(data)))
            return Execution(ActionResult(0, tuple(files), seconds=1.0))

        return behave

    def fail(self, exit_code: int = 1, stderr: bytes = b"") -> Behaviour:
        """A command that ends with a code other than 0."""

        def behave(_: Prepared) -> Execution:
            digest = self._cas.put(stderr) if stderr else None
            return Execution(ActionResult(exit_code, stderr=digest))

        return behave


class ScriptedWorkers:
    """Carries out one run at a time, when waited for; ``choose`` says which of n is next."""

    def __init__(self, choose: Callable[[int], int] = lambda _: 0) -> None:
        self.running: list[Run] = []
        self.most_running = 0
        self._choose = choose
        self._how: dict[str, tuple[Executor, Event, Clock]] = {}

    def start(self, run: Run, executor: Executor, cancel: Event, clock: Clock) -> None:
        self.running.append(run)
        self.most_running = max(self.most_running, len(self.running))
        self._how[run.label] = (executor, cancel, clock)

    def wait(self, timeout: float | None) -> Run | None:
        if not self.running:
            assert timeout is not None, "waited for ever for nothing"
            return None
        run = self.running.pop(self._choose(len(self.running)))
        run.carry_out(*self._how.pop(run.label))
        return run


class MemoryLeases:
    """Leases of one process; ``taken`` has those that another process holds."""

    def __init__(self, taken: set[str] | None = None) -> None:
        self.taken = taken or set()
        self.held: set[str] = set()

    def acquire(self, name: str) -> bool:
        if name in self.taken:
            return False
        assert name not in self.held, f"{name} was handed out twice"
        self.held.add(name)
        return True

    def release(self, name: str) -> None:
        self.held.remove(name)

    def holder(self, name: str) -> str:
        return "process 123"
