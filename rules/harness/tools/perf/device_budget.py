"""The device memory that a judging may use, and its peak use."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from base.program import MachineFault
from gpu import session
from gpu.driver import accelerator

GIB = 1 << 30
RESERVE = 2 * GIB  # contexts and libraries of the judge and of a runner, and rounding
_KEPT = 4 * GIB
_KEPT_SHARE = 8


@dataclass
class Budget:
    """A budget of memory, in bytes.

    Attributes:
        total_bytes: the device's memory.
        free_bytes: free when the judging began.
        allowed_bytes: limit for the judge and its runners together.
        most_bytes: the same for a config of which not even one call fits that limit.
        peak_bytes: the most that was in use at any call of ``note``.
    """

    total_bytes: int
    free_bytes: int
    allowed_bytes: int
    most_bytes: int
    peak_bytes: int = 0

    @classmethod
    def of_device(cls, share: float) -> Budget:
        """A budget of at most ``share`` of the device, and at most what is free.

        A config of which not even one call fits the share may use all that is free, for one call
        at a time.
        """
        own = accelerator().memory_reserved()
        return cls.of(session.memory_bytes(), session.free_bytes() + own, share)

    @classmethod
    def of(cls, total: int, free: int, share: float) -> Budget:
        """A budget from these figures."""
        return cls(total, free, min(int(total * share), free), free)

    @property
    def kept_bytes(self) -> int:
        """The bytes for keeping calls that the other side will make, too."""
        return max(0, min(_KEPT, (self.allowed_bytes - RESERVE) // _KEPT_SHARE))

    @property
    def tensor_bytes(self) -> int:
        """The bytes for the tensors of a batch of several calls."""
        return max(0, self.allowed_bytes - RESERVE - self.kept_bytes)

    def demand(self, config: str, needed: int) -> None:
        """Raise MachineFault if not even one call of a config fits."""
        if needed > self.most_bytes - RESERVE:
            raise MachineFault(
                f"DEVICE_MEMORY: {config} needs {_gib(needed + RESERVE)} of the device; "
                f"{_gib(self.free_bytes)} of {_gib(self.total_bytes)} are free, "
                f"{_gib(self.most_bytes)} may be taken"
            )

    def note(self) -> None:
        """Record how much memory is in use now."""
        self.peak_bytes = max(self.peak_bytes, self.free_bytes - session.free_bytes())

    def to_json(self) -> dict[str, Any]:
        """As a part of ``samples.json``."""
        return asdict(self)


def _gib(size: int) -> str:
    return f"{size / GIB:.2f} GiB"
