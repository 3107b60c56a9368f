"""A time limit for drivers, which may block when a device has failed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from kabuild.base import threads
from kabuild.model.device import Device, Devices, Exposure
from kabuild.platform import Driver, Remark

TIMEOUT_S = 60.0
"""Seconds for one answer; a driver that wakes eight devices takes about twenty."""

T = TypeVar("T")


def answer(ask: Callable[[], T], seconds: float = TIMEOUT_S) -> T:
    """What ``ask`` returns or raises; TimeoutError after ``seconds``.

    Its thread is then left behind: nothing can end a call into a driver.
    """
    answers: list[T] = []
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            answers.append(ask())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller
            errors.append(error)

    thread = threading.Thread(target=wait, name="driver", daemon=True)
    threads.start(thread)
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not answers:
        msg = f"the driver has not answered for {seconds:g} s"
        raise TimeoutError(msg)
    return answers[0]


class WithTimeout:
    """A driver with a time limit of ``seconds``."""

    def __init__(self, platform: str, driver: Driver, seconds: float = TIMEOUT_S) -> None:
        self._platform = platform
        self._driver = driver
        self._seconds = seconds

    def probe(self) -> Devices:
        """All devices, or why there are none."""
        try:
            return answer(self._driver.probe, self._seconds)
        except TimeoutError as error:
            return Devices(self._platform, absent=str(error))

    def lost(self, device: Device) -> str:
        """Why the device does not answer any more; a timeout is a reason."""
        try:
            return answer(lambda: self._driver.lost(device), self._seconds)
        except TimeoutError as error:
            return str(error)

    def users(self, device: Device) -> tuple[int, ...]:
        """Processes that compute on it; none if the driver does not say."""
        try:
            return answer(lambda: self._driver.users(device), self._seconds)
        except TimeoutError:
            return ()

    def exposure(self, device: Device) -> Exposure:
        """What a sandbox must expose; the driver is not asked."""
        return self._driver.exposure(device)

    def remarks(self) -> tuple[Remark, ...]:
        """Further remarks for ``kabuild doctor``; a timeout is one."""
        try:
            return answer(self._driver.remarks, self._seconds)
        except TimeoutError as error:
            return (Remark(f"driver of {self._platform}", str(error), good=False),)
