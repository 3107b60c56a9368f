"""Times each mode of a PyTorch baseline on a device."""

from __future__ import annotations

from collections.abc import Sequence

from base.program import Config, MachineFault
from truth.assessment import Assessor
from truth.oracle import TaskFault

from perf.choice import COMPILED, COUNTED, Choice, Looks
from perf.compiling import groups, together
from perf.gate_turn import Held, inputs
from perf.gated import GatedMeter
from perf.pilot import Pilot

LOOKS = 3
_LINES = 4  # of the error that makes a mode unavailable


class Chooser:
    """Chooses among eager and compiled modes; a mode must give correct results to be timed."""

    def __init__(
        self, meter: GatedMeter, pilot: Pilot, assessor: Assessor, configs: Sequence[Config]
    ) -> None:
        self._meter = meter
        self._pilot = pilot
        self._assessor = assessor
        self._configs = configs
        self.looks = {config.name: Looks() for config in configs}

    def choose(self) -> Choice:
        """The fastest mode of each config.

        The mode with graphs is tried on the first config only. Raises TaskFault if the eager
        baseline fails, and MachineFault if its results are wrong.
        """
        self._look_at_eager()
        for mode in COMPILED:
            self._look_at(mode, self._configs if mode in COUNTED else self._configs[:1])
        return Choice.fastest(self._configs, self.looks)

    def compile_again(self, choice: Choice) -> bool:
        """Have fresh processes compile each config in the mode that was chosen for it.

        Returns whether all results are right again.
        """
        compiled = [config for config in self._configs if choice.modes[config.name]]
        self._meter.modes |= choice.modes
        for group in groups(self._pilot, compiled):
            with together(self._meter, self._pilot, group) as started:
                for config in group:
                    try:
                        with started.running(config) as runner:
                            if self._wrong(runner, config):
                                return False
                    except TaskFault:
                        return False
        return True

    def _look_at_eager(self) -> None:
        for config in self._configs:
            self._meter.modes[config.name] = ""
        with self._meter.running("baseline", self._configs[0]) as runner:
            for config in self._configs:
                if wrong := self._look("", runner, config):
                    raise MachineFault(f"the baseline gives wrong results here: {wrong}")

    def _look_at(self, mode: str, configs: Sequence[Config]) -> None:
        """Time a compiled mode for each config, or record why it is not available."""
        for config in configs:
            self._meter.modes[config.name] = mode
        for group in groups(self._pilot, configs):
            with together(self._meter, self._pilot, group) as started:
                for config in group:
                    seen = self.looks[config.name]
                    try:
                        with started.running(config) as runner:
                            if wrong := self._look(mode, runner, config):
                                seen.refused[mode] = f"gives wrong results: {wrong}"
                    except TaskFault as fault:
                        seen.times.pop(mode, None)
                        seen.refused[mode] = "; ".join(str(fault).splitlines()[:_LINES])

    def _look(self, mode: str, runner: Held, config: Config) -> str:
        """Time a mode in a process; how its results are wrong instead, if they are."""
        first = self._pilot.look("baseline", runner, config)
        if wrong := self._wrong(runner, config):
            return wrong
        more = [self._pilot.again("baseline", runner, config, first) for _ in range(LOOKS - 1)]
        self.looks[config.name].times[mode] = [plan.call_ns for plan in (first, *more)]
        return ""

    def _wrong(self, runner: Held, config: Config) -> str:
        """Describe the error of a call on new inputs; empty if it is correct."""
        calls = self._meter.draw(0, config, 3, 1)
        return self._assessor.wrong_by_itself(calls[0], runner.batch(inputs(calls)).outputs[0])
