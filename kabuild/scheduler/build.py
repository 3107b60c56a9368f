"""The state of a build: what has settled, what runs, and what may start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from threading import Event

from kabuild.base.clock import Clock
from kabuild.base.errors import (
    DeviceError,
    InfraError,
    Interrupted,
    KabuildError,
    LoadError,
    Reason,
)
from kabuild.base.listing import abridged
from kabuild.execution.inputs import MissingOutputError
from kabuild.execution.prepared import Prepared
from kabuild.model.action import Action, Resources
from kabuild.model.digest import Digest
from kabuild.model.event import ActionExecuting, ActionSettled, ActionStarted, EventSink, Warned
from kabuild.model.graph import ActionGraph
from kabuild.model.result import ActionResult, Outcome, Settled
from kabuild.model.verdict import Verdict
from kabuild.scheduler.frontier import Frontier, State
from kabuild.scheduler.gating import Stopped, because_of, did_not_pass, stopped
from kabuild.scheduler.leasing import Leasing
from kabuild.scheduler.order import Order
from kabuild.scheduler.plan import History
from kabuild.scheduler.resources import Slots
from kabuild.scheduler.run_queue import RunQueue
from kabuild.scheduler.workers import Executor, Run
from kabuild.store.action_cache import blobs_of
from kabuild.store.cas import BlobMissingError

MAX_REWINDS = 3
"""How often an action's generated inputs may be lost before it fails."""


class Build:
    """The state of one build. Used by one thread."""

    def __init__(
        self,
        graph: ActionGraph,
        executor: Executor,
        sink: EventSink,
        leasing: Leasing,
        *,
        jobs: int,
        remote_jobs: int,
        keep_going: bool,
        stop: Event,
        history: History,
        clock: Clock,
    ) -> None:
        self.settled: dict[str, Settled] = {}
        self.running: dict[str, Run] = {}
        self._graph = graph
        self._executor = executor
        self._sink = sink
        self._leasing = leasing
        self._slots = Slots(jobs)
        self._remote_slots = Slots(remote_jobs, first=jobs)
        self._keep_going = keep_going
        self._stop = stop
        self._history = history
        self._clock = clock
        self._frontier = Frontier(graph)
        self._produced: dict[str, ActionResult] = {}
        self._order = Order(graph, history)
        self._queue = RunQueue()
        self._leaders: dict[Digest, str] = {}
        self._leads: dict[str, Digest] = {}
        self._parked: dict[str, list[str]] = {}
        self._rewinds: Counter[str] = Counter()
        self._halted = ""

    def is_done(self) -> bool:
        """Whether every action has settled."""
        return self._frontier.is_done()

    def waits_for_lease(self) -> bool:
        """Whether something could start if another process released a device."""
        return self._leasing.is_waiting()

    def advance(self) -> None:
        """Look up or settle ready actions until none is left."""
        while True:
            self._heed_stop()
            ready = self._frontier.take_ready()
            if not ready:
                return
            self._anticipate(ready)
            for label in ready:
                self._heed_stop()
                self._consider(label, self._graph.actions[label])

    def _heed_stop(self) -> None:
        if self._stop.is_set() and not self._halted:
            self._halted = "interrupted"
        if self._halted:
            self._cancel_queued()

    def _anticipate(self, ready: Collection[str]) -> None:
        """Tell the executor what it will be asked for: one question may do for many."""
        if self._halted:
            return
        actions = [self._graph.actions[label] for label in ready]
        with suppress(KabuildError):  # the lookup meets it again, and says whose it is
            self._executor.anticipate(
                [action for action in actions if not stopped(action, self.settled)],
                self._produced,
            )

    def startable(self) -> Iterator[Run]:
        """Take slots and leases for as many queued actions as fit, most urgent first.

        The caller starts each run before it asks for the next.
        """
        return self._queue.start(self._try_start)

    def finish(self, run: Run) -> None:
        """Record how a run ended. Raises exceptions that are bugs of kabuild."""
        action = self._graph.actions[run.label]
        self.let_go(run)
        if run.bug is not None:
            raise run.bug
        if isinstance(run.error, BlobMissingError) and self._rewind(run.label, run.error.digests):
            return
        if isinstance(run.error, DeviceError) and self._goes_elsewhere(run, run.error):
            return
        settled = run.settled or self._from_error(action, run.error, run.prepared.key)
        if run.settled:
            result = run.settled.result if run.prepared.remote else None
            self._history.record(action, result.seconds if result else run.seconds)
        self._settle(run.label, replace(settled, seconds=run.seconds))

    def _consider(self, label: str, action: Action) -> None:
        """Settle a ready action without running it if possible, else queue it."""
        if stop := stopped(action, self.settled):
            self._stop_action(label, action, stop)
            return
        if self._halted:
            message = self._halted
            self._settle(label, Settled(action.label, Outcome.CANCELLED, message=message))
            return
        try:
            found = self._executor.lookup(action, self._produced)
        except MissingOutputError as error:
            producer = self.settled[error.producer]
            if producer.verdict and producer.verdict.verdict is not Verdict.PASS:
                self._stop_action(label, action, because_of(producer, Outcome.SKIPPED))
            else:
                self._settle(label, self._from_error(action, error, None))
        except KabuildError as error:
            self._settle(label, self._from_error(action, error, None))
        else:
            if isinstance(found, Settled):
                self._settle(label, found)
            else:
                self._enqueue(label, found)

    def _enqueue(self, label: str, prepared: Prepared) -> None:
        """Queue an action, unless an equal one is queued or running."""
        if not prepared.remote and self._leasing.absence(prepared.action.resources.lease):
            self._settle_without_device(label, prepared)
            return
        leader = self._leaders.setdefault(prepared.key, label)
        if leader != label:
            self._frontier.move(label, State.PARKED)
            self._parked.setdefault(leader, []).append(label)
            return
        self._leads[label] = prepared.key
        self._frontier.move(label, State.QUEUED)
        self._queue.push(prepared, *self._order.of(label))

    def _try_start(self, label: str, prepared: Prepared) -> Run | None:
        action = self._graph.actions[label]
        all_slots, needs = self._occupied(prepared)
        slots = all_slots.take(needs)
        if slots is None:
            return None
        lease = self._leasing.take(label, needs.lease)
        if lease is None:
            all_slots.give_back(slots)
            return None
        run = Run(label, replace(prepared, device=lease), slots)
        self._frontier.move(label, State.RUNNING)
        self.running[label] = run
        if needs.lease:
            for other in filter(self._queue.__contains__, self._order.begin(label)):
                self._queue.hasten(other, *self._order.of(other))
        now = self._clock.wall()
        try:
            self._sink.emit(ActionStarted(action.label, action.mnemonic, slots[0], now))
            self._sink.emit(ActionExecuting(action.label, now))
        except BaseException:
            self.let_go(run)  # no worker has it, so none reports its end
            raise
        return run

    def _occupied(self, prepared: Prepared) -> tuple[Slots, Resources]:
        """What a run occupies of this build: elsewhere, the node takes slots and leases."""
        if prepared.remote:
            return self._remote_slots, Resources()
        return self._slots, prepared.action.resources

    def let_go(self, run: Run) -> None:
        """Release the slots and lease of a run."""
        del self.running[run.label]
        self._occupied(run.prepared)[0].give_back(run.slots)
        self._leasing.let_go(run.label)

    def _goes_elsewhere(self, run: Run, error: DeviceError) -> bool:
        """Whether an action is run on another device, since its own has failed.

        An action that had begun is not: it may have broken the device, and would break the next.
        """
        name = run.prepared.action.resources.lease
        if not self._leasing.withdraw(name, run.prepared.device, error):
            for prepared in self._queue.drain(name):
                self._settle_without_device(str(prepared.action.label), prepared)
        elif not error.spoiled:
            self._release_parked(run.label)
            self._frontier.requeue(run.label)
            return True
        return False

    def _settle_without_device(self, label: str, prepared: Prepared) -> None:
        action = prepared.action
        absent = self._leasing.absence(action.resources.lease)
        self._settle(
            label,
            self._from_error(action, InfraError(Reason.NO_DEVICE, absent), prepared.key),
        )

    def _rewind(self, label: str, lost: Collection[Digest]) -> bool:
        """Rerun the producers of the blobs ``lost``; False if that cannot help ``label``."""
        made = {
            dependency: {*blobs_of(self._produced[dependency])}.intersection(lost)
            for dependency in self._graph.actions[label].dependencies()
            if dependency in self._produced
        }
        makers = [dependency for dependency, blobs in made.items() if blobs]
        self._rewinds[label] += 1
        if set().union(*made.values()) != {*lost} or self._rewinds[label] > MAX_REWINDS:
            return False
        lacking, again = abridged([f"blob {digest}" for digest in lost]), ", ".join(makers)
        self._sink.emit(Warned(f"{label} lacks {lacking}; running {again} again"))
        self._release_parked(label)
        for withdrawn in self._frontier.reopen(makers, label):
            self._queue.withdraw(withdrawn)
            self._release_parked(withdrawn)
        return True

    def _from_error(
        self, action: Action, error: KabuildError | None, key: Digest | None
    ) -> Settled:
        """Settle an action that could not run:

        interrupted, a missing file, or the machine failed.
        """
        if self._stop.is_set() or isinstance(error, Interrupted):
            return Settled(action.label, Outcome.CANCELLED, key, message="interrupted")
        if isinstance(error, LoadError):
            return Settled(action.label, Outcome.FAILED, key, message=str(error))
        fault = error.reason.name if error else ""
        return Settled(action.label, Outcome.INFRA, key, message=str(error), fault=fault)

    def _stop_action(self, label: str, action: Action, stop: Stopped) -> None:
        fault = self.settled[str(stop.by)].fault
        settled = Settled(action.label, stop.outcome, message=stop.because, fault=fault)
        if stop.outcome is Outcome.SKIPPED:
            try:
                settled = self._executor.skip(action, stop.because)
            except KabuildError as error:
                settled = self._from_error(action, error, None)
        self._settle(label, replace(settled, stopped_by=stop.by))

    def _settle(self, label: str, settled: Settled) -> None:
        self.settled[label] = settled
        self._produced.pop(label, None)
        if settled.result:
            self._produced[label] = settled.result
        self._frontier.settle(label)
        mnemonic = self._graph.actions[label].mnemonic
        self._sink.emit(ActionSettled(settled, mnemonic, self._clock.wall()))
        if not self._keep_going and not self._halted and did_not_pass(settled):
            self._halted = f"not started, because {settled.label} did not pass"
        followers = self._release(label)
        for follower in followers:
            if self._serves(label, follower, settled):
                copy = replace(
                    settled, label=self._graph.actions[follower].label, cached=True, seconds=0.0
                )
                self._settle(follower, copy)
            else:
                self._frontier.requeue(follower)

    def _serves(self, label: str, follower: str, settled: Settled) -> bool:
        """Whether an equal action may take over the result of ``label``.

        Whether an action is a gate is not in the key but decides what a result means. So a gate
        that is equal to a plain action looks up its result itself.
        """
        actions = self._graph.actions
        alike = actions[follower].gate == actions[label].gate
        return alike and settled.outcome in {Outcome.DONE, Outcome.FAILED}

    def _release(self, label: str) -> list[str]:
        """The actions that were parked behind ``label``, which is no longer pending."""
        if key := self._leads.pop(label, None):
            del self._leaders[key]
        return self._parked.pop(label, [])

    def _release_parked(self, label: str) -> None:
        for follower in self._release(label):
            self._frontier.requeue(follower)

    def _cancel_queued(self) -> None:
        """Settle queued actions, since the build is being stopped."""
        for prepared in self._queue.drain():
            label = prepared.action.label
            message = self._halted
            self._settle(
                str(label), Settled(label, Outcome.CANCELLED, prepared.key, message=message)
            )
