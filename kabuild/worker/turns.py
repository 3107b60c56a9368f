"""Whose turn it is on a node: CPU slots in the order of arrival, then a device."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from kabuild.base.errors import DeviceError, Interrupted, Reason
from kabuild.model.action import Resources
from kabuild.scheduler.resources import Leases, Slots

_POLL = 0.1
"""Seconds between looks at whether a run was cancelled, or another process left a device."""


@dataclass(frozen=True)
class Load:
    """What a node has to do at one moment.

    Attributes:
        waiting: actions that wait for slots or for a device.
        running: actions that run.
        devices: those in use, as ``held``, and the others that are left.
    """

    waiting: int
    running: int
    devices: tuple[str, ...]
    held: frozenset[str]


class Turns:
    """What runs at a time on one node. Used from many threads.

    ``pools`` has the devices that satisfy a lease, by its name; a name without a pool is a single
    resource, such as ``cpu``. An action that takes all slots runs alone.
    """

    def __init__(self, slots: int, leases: Leases, pools: Mapping[str, Collection[str]]) -> None:
        self._slots = Slots(slots)
        self._leases = leases
        self._pools = {name: [*devices] for name, devices in pools.items()}
        self._held: set[str] = set()
        self._line: deque[object] = deque()
        self._counts: Counter[str] = Counter()
        self._changed = threading.Condition()

    @contextmanager
    def take(self, needs: Resources, cancel: threading.Event) -> Iterator[str]:
        """Wait for slots and a device, and have them during the body, which gets its lease.

        Raises Interrupted once ``cancel`` is set, and DeviceError where no device is left.
        """
        with self._counted("taken on"):
            taken = self._wait_for_slots(needs, cancel)
            try:
                lease = self._wait_for_device(needs.lease, cancel)
                try:
                    with self._counted("running"):
                        yield lease
                finally:
                    self._give_back(lease)
            finally:
                with self._changed:
                    self._slots.give_back(taken)
                    self._changed.notify_all()

    def load(self) -> Load:
        """What waits and what runs now."""
        with self._changed:
            left = {device for devices in self._pools.values() for device in devices}
            running = self._counts["running"]
            waiting = self._counts["taken on"] - running
            return Load(waiting, running, tuple(sorted(left)), frozenset(self._held))

    def withdraw(self, lease: str) -> None:
        """Use a device no more, which is lost."""
        with self._changed:
            for devices in self._pools.values():
                if lease in devices:
                    devices.remove(lease)

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        """Count the body while it runs."""
        with self._changed:
            self._counts[name] += 1
        try:
            yield
        finally:
            with self._changed:
                self._counts[name] -= 1

    def _wait_for_slots(self, needs: Resources, cancel: threading.Event) -> tuple[int, ...]:
        ticket = object()
        with self._changed:
            self._line.append(ticket)
            try:
                while True:
                    _check(cancel)
                    if self._line[0] is ticket:
                        taken = self._slots.take(needs)
                        if taken is not None:
                            return taken
                    self._changed.wait(_POLL)
            finally:
                self._line.remove(ticket)
                self._changed.notify_all()

    def _wait_for_device(self, name: str, cancel: threading.Event) -> str:
        if not name:
            return ""
        with self._changed:
            while True:
                _check(cancel)
                devices = self._pools.get(name, [name])
                if not devices:
                    what = f"no device of platform {name} is left on this node"
                    raise DeviceError(Reason.NO_DEVICE, what)
                for lease in devices:
                    if lease not in self._held and self._leases.acquire(lease):
                        self._held.add(lease)
                        return lease
                self._changed.wait(_POLL)

    def _give_back(self, lease: str) -> None:
        if not lease:
            return
        with self._changed:
            self._held.remove(lease)
            self._leases.release(lease)
            self._changed.notify_all()


def _check(cancel: threading.Event) -> None:
    if cancel.is_set():
        raise Interrupted(Reason.INTERRUPTED, "the action was cancelled while it waited")
