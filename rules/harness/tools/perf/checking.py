"""How long the host takes for the check that a task brings along."""

from __future__ import annotations

import time
from collections.abc import Callable

from base.program import Config
from truth.assessment import Call
from truth.judge import Judge

_TIMES = 2  # the first one of a process compiles and allocates


class Checking:
    """Times a task's own check on the oracle's outputs, which no program has a part in."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._seconds: dict[str, float] = {}

    def seconds(self, config: Config, draw: Callable[[], Call]) -> float:
        """The seconds for one call, which ``draw`` makes; 0 if the task has no check.

        Raises TaskFault.
        """
        if not self._judge.oracle.structured:
            return 0.0
        if config.name not in self._seconds:
            call = draw()
            self._seconds[config.name] = min(self._once(call) for _ in range(_TIMES))
        return self._seconds[config.name]

    def _once(self, call: Call) -> float:
        expected = dict(call.expected)
        began = time.perf_counter()
        self._judge.oracle.check_own(call.config, call.inputs, expected)
        return time.perf_counter() - began
