"""The devices of one build: exposed to actions, and watched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kabuild.base.errors import DeviceError, InfraError, Reason
from kabuild.model.device import Device, Devices, Exposure
from kabuild.platform import Driver, missing

GRACE = 2.0
"""Seconds for processes that have been killed to disappear from a device."""

_POLL = 0.1


class DevicePool:
    """The devices that a build may use. Thread-safe."""

    def __init__(
        self,
        devices: Devices | None = None,
        driver: Driver | None = None,
        *,
        grace: float = GRACE,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._by_lease = {device.lease: device for device in devices.found} if devices else {}
        self._driver = driver
        self._grace = grace
        self._sleep = sleep

    @contextmanager
    def using(self, lease: str, *, timed: bool) -> Iterator[Exposure]:
        """Use the device of a lease; with ``timed``, no other process may compute on it.

        A lease without a device exposes nothing. Raises DeviceError(DEVICE_LOST, DEVICE_BUSY),
        before or after the body, whose result or exception is then void.
        """
        device = self._by_lease.get(lease)
        if device is None or self._driver is None:
            yield Exposure()
            return
        self._check(device, self._driver, timed=timed, spoiled=False)
        try:
            yield self._driver.exposure(device)
        except InfraError as error:
            self._check_answer(device, self._driver, spoiled=True, cause=error)
            raise
        self._check(device, self._driver, timed=timed, spoiled=True)

    def _check(self, device: Device, driver: Driver, *, timed: bool, spoiled: bool) -> None:
        self._check_answer(device, driver, spoiled=spoiled)
        users = self._lasting_users(device, driver) if timed else ()
        if users:
            raise DeviceError(
                Reason.DEVICE_BUSY,
                f"{device.name} is busy: {_named(users)} on it",
                spoiled=spoiled,
                hint="times are meaningless while other processes use the device: end them, "
                "or choose another device with --devices",
            )

    def _check_answer(
        self, device: Device, driver: Driver, *, spoiled: bool, cause: InfraError | None = None
    ) -> None:
        if lost := driver.lost(device) or missing(device.nodes):
            raise DeviceError(
                Reason.DEVICE_LOST,
                f"{device.name} no longer answers: {lost}",
                spoiled=spoiled,
                hint="see the kernel's log (dmesg); a reset or a reboot brings it back",
            ) from cause

    def _lasting_users(self, device: Device, driver: Driver) -> tuple[int, ...]:
        """Processes that keep computing on it."""
        for _ in range(round(self._grace / _POLL)):
            if not (users := driver.users(device)):
                return users
            self._sleep(_POLL)
        return driver.users(device)


def _named(users: tuple[int, ...]) -> str:
    if len(users) == 1:
        return f"process {users[0]} computes"
    return f"processes {', '.join(map(str, users[:-1]))} and {users[-1]} compute"
