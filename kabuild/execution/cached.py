"""Executes actions through the action cache."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from secrets import token_hex
from threading import Event
from typing import Protocol

from kabuild.base.errors import LoadError
from kabuild.execution.inputs import Inputs, MissingOutputError
from kabuild.execution.outcome import conclude, recall
from kabuild.execution.prepared import Prepared, prepare
from kabuild.execution.strategy import Execution, Strategy
from kabuild.model.action import VERDICT_FILE, Action
from kabuild.model.label import Label
from kabuild.model.result import ActionResult, Outcome, OutputFile, Settled
from kabuild.model.verdict import GateVerdict, Verdict
from kabuild.store.action_cache import ActionCache
from kabuild.store.cas import Cas


def _always(_: Action) -> bool:
    return True


@dataclass(frozen=True)
class CachePolicy:
    """Which actions may be answered from the cache, and which results are remembered.

    ``runs_per_gate`` > 1 runs each gate that often, uncached, and reports differing verdicts.
    """

    read: Callable[[Action], bool] = _always
    write: Callable[[Action], bool] = _always
    runs_per_gate: int = 1

    def may_read(self, action: Action) -> bool:
        """Whether a cached result will do."""
        return self.read(action) and self.runs(action) == 1

    def runs(self, action: Action) -> int:
        """How often ``action`` runs."""
        return self.runs_per_gate if action.gate else 1


def fresh_gates(action: Action) -> bool:
    """A CachePolicy's ``read`` for --nocache_test_results: everything but gates."""
    return not action.gate


class Shared(Protocol):
    """A cache that other machines have, too; see ``execution.shared.SharedCache``."""

    def fetch(self, wanted: Sequence[Prepared]) -> None:
        """Import results into the store. Never raises for what a server does."""
        ...

    def offer(self, prepared: Prepared, result: ActionResult) -> None:
        """Send a result that was made here; returns at once."""
        ...


class Remote(Protocol):
    """Runs actions elsewhere; see ``execution.fleet.Fleet``."""

    def takes(self, action: Action) -> bool:
        """Whether it runs ``action``; the others run here."""
        ...

    def run(self, prepared: Prepared, cancel: Event) -> Execution:
        """Run one; see Strategy."""
        ...


class CachedExecutor:
    """Settles single actions whose dependencies have settled.

    ``lookup`` is quick and runs nothing; ``execute`` may take long and is called from many threads.
    Only verdicts and successful actions are cached. Infrastructure failures, failed actions and
    flaky gates are not.

    ``anticipate`` asks ``shared`` for the results that the store lacks. What ``remote`` takes runs
    there.
    """

    def __init__(
        self,
        inputs: Inputs,
        cas: Cas,
        actions: ActionCache,
        strategy: Strategy,
        policy: CachePolicy | None = None,
        *,
        shared: Shared | None = None,
        remote: Remote | None = None,
    ) -> None:
        self._inputs = inputs
        self._cas = cas
        self._actions = actions
        self._strategy = strategy
        self._policy = policy or CachePolicy()
        self._shared = shared
        self._remote = remote
        self._ahead: dict[Label, Prepared] = {}

    def anticipate(self, actions: Iterable[Action], produced: Mapping[str, ActionResult]) -> None:
        """Get the results of ``actions``, which are looked up next, with few questions.

        Raises StoreError. What is wrong with an action, ``lookup`` says.
        """
        if self._shared is None:
            return
        wanted = []
        for action in actions:
            with suppress(LoadError, MissingOutputError):
                prepared = prepare(action, self._inputs.root(action, produced))
                self._ahead[action.label] = prepared
                if self._policy.may_read(action) and self._actions.get(prepared.key) is None:
                    wanted.append(prepared)
        if wanted:
            self._shared.fetch(wanted)

    def lookup(self, action: Action, produced: Mapping[str, ActionResult]) -> Settled | Prepared:
        """The cached outcome of ``action``, or what ``execute`` needs to run it.

        Raises LoadError for sources that are missing, MissingOutputError, StoreError.
        """
        prepared = self._ahead.pop(action.label, None)
        if prepared is None:
            prepared = prepare(action, self._inputs.root(action, produced))
        if found := self._recall(prepared):
            return found
        if self._remote and self._remote.takes(action):
            return replace(prepared, remote=True)
        if self._strategy.hermetic() or action.sandboxed:
            return prepared
        prepared = prepare(action, prepared.root, hermetic=False)
        return self._recall(prepared) or prepared

    def execute(self, prepared: Prepared, cancel: Event) -> Settled:
        """Run an action and cache its result.

        Raises InfraError (BlobMissingError when an earlier output is gone), Interrupted.
        """
        action = prepared.action
        self.keep(prepared)
        before = self._inputs.observe(action)
        ran = [self._run(prepared, cancel) for _ in range(self._policy.runs(action))]
        self._inputs.check_unchanged(before)
        settled = _worst(ran)
        if flake := _flake(ran):
            return replace(settled, message=flake)
        if settled.outcome is Outcome.DONE and settled.result and self._policy.write(action):
            self._actions.put(prepared.key, settled.result)
            if self._shared:
                self._shared.offer(prepared, settled.result)
        return settled

    def keep(self, prepared: Prepared) -> None:
        """Store the inputs of an action and the messages behind its key.

        Then it can run, and later keys can be compared with this one. Raises InfraError and
        StoreError.
        """
        self._inputs.supply(prepared.root, self._cas)
        self._cas.put(prepared.message)
        self._cas.put(prepared.command)
        for directory in prepared.root.all_directories():
            self._cas.put(directory.wire)

    def skip(self, action: Action, because: str) -> Settled:
        """Settle an action that will not run; a gate still gets a verdict file."""
        if not action.gate:
            return Settled(action.label, Outcome.SKIPPED, message=because)
        verdict = GateVerdict.skipped(action.gate, because)
        file = OutputFile(VERDICT_FILE, self._cas.put(verdict.to_json()))
        return Settled(
            action.label,
            Outcome.SKIPPED,
            result=ActionResult(0, (file,)),
            verdict=verdict,
            message=because,
        )

    def _recall(self, prepared: Prepared) -> Settled | None:
        if not self._policy.may_read(prepared.action):
            return None
        result = self._actions.get(prepared.key)
        if result is None:
            return None
        return recall(prepared, replace(result, hermetic=prepared.hermetic), self._cas)

    def _run(self, prepared: Prepared, cancel: Event) -> Settled:
        if self._remote and prepared.remote:
            if not self._policy.may_read(prepared.action):
                prepared = replace(prepared, fresh=token_hex(16))
            execution = self._remote.run(prepared, cancel)
        else:
            execution = self._strategy.run(prepared, cancel)
        result = replace(execution.result, hermetic=prepared.hermetic)
        settled = conclude(prepared, Execution(result, execution.fault), self._cas)
        return replace(settled, remote=prepared.remote)


def _worst(ran: list[Settled]) -> Settled:
    """The first run that did not pass, or else the first run."""
    return next((s for s in ran if s.verdict and s.verdict.verdict is not Verdict.PASS), ran[0])


def _flake(ran: list[Settled]) -> str:
    """How often each verdict came, if runs of a gate differ."""
    counts: dict[str, int] = {}
    for settled in ran:
        if settled.verdict:
            reason = f"({settled.verdict.reason})" if settled.verdict.reason else ""
            name = f"{settled.verdict.verdict.value}{reason}"
            counts[name] = counts.get(name, 0) + 1
    if len(counts) < 2:
        return ""
    return "flaky: " + ", ".join(f"{count} x {name}" for name, count in counts.items())
