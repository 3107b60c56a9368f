"""Predicts the seconds of checks from those of earlier ones."""

from __future__ import annotations

MARGIN = 1.2
"""As many times as long as any like it before it a check may take."""


class Costs:
    """Bounds in seconds, each from checks of its kind.

    A check takes a fixed time plus the time that it is given to measure, so with more time to
    measure it takes longer by at most the same factor.
    """

    def __init__(self) -> None:
        self._dearest: dict[tuple[str, float], float] = {}

    def note(self, gate: str, seconds: float, given: float = 0.0) -> None:
        """One check of ``gate`` took ``seconds``; ``given`` were for measuring."""
        key = (gate, given)
        self._dearest[key] = max(seconds, self._dearest.get(key, 0.0))

    def bound(self, gate: str, given: float = 0.0) -> float:
        """The most seconds of a check; one of a new kind takes as long as any known one."""
        known = self._of(gate)
        if not known:
            return max((self.bound(kind) for kind, _ in self._dearest), default=0.0)
        return MARGIN * min(
            seconds * max(1.0, given / least if least else 1.0) for least, seconds in known.items()
        )

    def affordable(self, gate: str, left: float) -> float:
        """The effort that fits if all of it may take ``left``; 0 if none fits."""
        left /= MARGIN
        fitting = [
            given * left / seconds for given, seconds in self._of(gate).items() if seconds <= left
        ]
        return max(fitting, default=0.0)

    def _of(self, gate: str) -> dict[float, float]:
        return {given: seconds for (kind, given), seconds in self._dearest.items() if kind == gate}
