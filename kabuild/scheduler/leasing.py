"""The leases of a build: who holds which device, and which devices exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kabuild.base.clock import Clock
from kabuild.base.errors import DeviceError
from kabuild.model.device import Devices
from kabuild.model.event import EventSink, Warned
from kabuild.scheduler.resources import Leases

NOTICE = 1.0
"""Seconds after which a waiting build names the process it waits for."""


@dataclass(frozen=True)
class Pool:
    """The devices that can satisfy a lease of one name.

    ``titles`` are their names for people; ``absent`` says why there are none.
    """

    titles: Mapping[str, str] = field(hash=False)
    absent: str = ""


def pools_of(devices: Devices) -> dict[str, Pool]:
    """The pool for the lease of a platform: all of its devices. ``cpu`` has none."""
    if devices.platform == "cpu":
        return {}
    titles = {device.lease: device.name for device in devices.found}
    return {devices.platform: Pool(titles, devices.absent)}


class Leasing:
    """The leases of one build. Used by one thread.

    A lease whose name has no pool is a single resource.
    """

    def __init__(
        self, leases: Leases, pools: Mapping[str, Pool], sink: EventSink, clock: Clock
    ) -> None:
        self._leases = leases
        self._pools = {name: dict(pool.titles) for name, pool in pools.items()}
        self._absent = {name: pool.absent for name, pool in pools.items()}
        self._sink = sink
        self._clock = clock
        self._held: dict[str, str] = {}
        self._waiting_since: dict[str, float] = {}
        self._announced: set[str] = set()

    def is_waiting(self) -> bool:
        """Whether an action waits only for leases of other processes."""
        return bool(self._waiting_since)

    def absence(self, name: str) -> str:
        """Why no device satisfies ``name``; empty if one does."""
        return "" if self._pools.get(name, {name: name}) else self._absent[name]

    def take(self, holder: str, name: str) -> str | None:
        """Lease a device for ``name`` until ``holder`` releases it; None while all are taken.

        The empty name needs no lease. Raises StoreError.
        """
        if not name:
            return ""
        elsewhere = []
        for lease, title in self._pools.get(name, {name: name}).items():
            if lease in self._held.values():
                continue
            if self._leases.acquire(lease):
                self._held[holder] = lease
                self._waiting_since.pop(name, None)
                return lease
            elsewhere.append((lease, title))
        if elsewhere:
            self._wait(name, elsewhere)
        return None

    def let_go(self, holder: str) -> None:
        """Release the lease of ``holder``, if any."""
        if lease := self._held.pop(holder, ""):
            self._leases.release(lease)

    def withdraw(self, name: str, lease: str, error: DeviceError) -> bool:
        """Stop using a device in this build; return whether another one is left.

        Warns once.
        """
        pool = self._pools.get(name, {})
        if pool.pop(lease, None) is None:
            return bool(pool)
        self._absent[name] = error.message
        if not pool:
            self._waiting_since.pop(name, None)
        else:
            rest = ", ".join(pool.values())
            self._sink.emit(Warned(f"{error.message}; this build goes on with {rest}"))
        return bool(pool)

    def _wait(self, name: str, elsewhere: list[tuple[str, str]]) -> None:
        """Report that other processes hold the devices, unless this build uses one of them."""
        now = self._clock.monotonic()
        since = self._waiting_since.setdefault(name, now)
        works_here = any(lease in self._pools.get(name, {}) for lease in self._held.values())
        if works_here or now - since < NOTICE or name in self._announced:
            return
        self._announced.add(name)
        used = (
            f"'{title}', which {self._leases.holder(lease)} is using" for lease, title in elsewhere
        )
        self._sink.emit(Warned(f"waiting for {', or '.join(used)}"))
