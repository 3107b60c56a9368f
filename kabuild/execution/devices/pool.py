"""The devices of one build while it uses them: shown to actions, and watched."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kabuild.base.errors import DeviceError, InfraError, Reason
from kabuild.execution.devices.drivers import vendor_of
from kabuild.execution.devices.vendor import Vendor, missing
from kabuild.model.device import Device, Devices, Exposure

GRACE = 2.0
"""Seconds for processes that have been killed to disappear from a device."""

_POLL = 0.1


class DevicePool:
    """What an executor asks about the devices that a build may use. Used by many threads."""

    @classmethod
    def of(cls, devices: Devices) -> DevicePool:
        """The devices of a platform, watched through its driver; of none, nothing."""
        return cls(devices, vendor_of(devices.platform)) if devices.found else cls()

    def __init__(
        self,
        devices: Devices | None = None,
        vendor: Vendor | None = None,
        *,
        grace: float = GRACE,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._by_lease = {device.lease: device for device in devices.found} if devices else {}
        self._vendor = vendor
        self._grace = grace
        self._sleep = sleep

    @contextmanager
    def using(self, lease: str, *, timed: bool) -> Iterator[Exposure]:
        """Use the device of a lease; with ``timed``, nobody else may compute on it.

        A lease that is no device's exposes nothing. Raises DeviceError(DEVICE_LOST,
        DEVICE_BUSY), before the body or after it: whatever the body raised or came to is void
        then.
        """
        device = self._by_lease.get(lease)
        if device is None or self._vendor is None:
            yield Exposure()
            return
        self._check(device, self._vendor, timed=timed, spoiled=False)
        try:
            yield self._vendor.exposure(device)
        except InfraError as error:
            self._check_answer(device, self._vendor, spoiled=True, cause=error)
            raise
        self._check(device, self._vendor, timed=timed, spoiled=True)

    def _check(self, device: Device, vendor: Vendor, *, timed: bool, spoiled: bool) -> None:
        self._check_answer(device, vendor, spoiled=spoiled)
        users = self._lasting_users(device, vendor) if timed else ()
        if users:
            raise DeviceError(
                Reason.DEVICE_BUSY,
                f"{device.name} is busy: {_named(users)} on it",
                spoiled=spoiled,
                hint="times that are measured beside others mean nothing: end the others, "
                "or choose another device with --devices",
            )

    def _check_answer(
        self, device: Device, vendor: Vendor, *, spoiled: bool, cause: InfraError | None = None
    ) -> None:
        if lost := vendor.lost(device) or missing(device.nodes):
            raise DeviceError(
                Reason.DEVICE_LOST,
                f"{device.name} does not answer any more: {lost}",
                spoiled=spoiled,
                hint="see the kernel's log (dmesg); a reset or a reboot brings it back",
            ) from cause

    def _lasting_users(self, device: Device, vendor: Vendor) -> tuple[int, ...]:
        """Processes that compute on it and go on to do so."""
        for _ in range(round(self._grace / _POLL)):
            if not (users := vendor.users(device)):
                return users
            self._sleep(_POLL)
        return vendor.users(device)


def _named(users: tuple[int, ...]) -> str:
    if len(users) == 1:
        return f"process {users[0]} computes"
    return f"processes {', '.join(map(str, users[:-1]))} and {users[-1]} compute"
