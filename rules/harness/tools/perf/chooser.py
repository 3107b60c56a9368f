"""Times each mode of a PyTorch baseline on a device."""

from __future__ import annotations

from collections.abc import Sequence

from base.program import Config, MachineFault
from truth.assessment import Assessor
from truth.oracle import TaskFault

from perf.choice import COUNTED, RECORDED, Choice, Looks
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
        for mode in (*COUNTED, *RECORDED):
            left = list(self._configs if mode in COUNTED else self._configs[:1])
            while left:
                left = self._try(mode, left)
        return Choice.fastest(self._configs, self.looks)

    def compile_again(self, choice: Choice) -> bool:
        """Have a fresh process compile each config in the mode that was chosen for it.

        Returns whether all results are right again.
        """
        for mode in sorted(set(choice.modes.values()) - {""}):
            configs = [config for config in self._configs if choice.modes[config.name] == mode]
            self._meter.modes |= choice.modes
            try:
                with self._meter.running("baseline", configs[0]) as runner:
                    for config in configs:
                        self._meter.prepare("baseline", runner, config, 1)
                        if self._wrong(runner, config):
                            return False
            except TaskFault:
                return False
        return True

    def _try(self, mode: str, configs: Sequence[Config]) -> list[Config]:
        """Time a mode for each config, or record why it is not available; returns the rest."""
        waiting = list(configs)
        for config in configs:
            self._meter.modes[config.name] = mode
        try:
            with self._meter.running("baseline", configs[0]) as runner:
                while waiting:
                    self._look(mode, runner, waiting[0])
                    waiting.pop(0)
        except TaskFault as fault:
            if not mode:
                raise
            if waiting:
                said = "; ".join(str(fault).splitlines()[:_LINES])
                self.looks[waiting.pop(0).name].refused[mode] = said
        return waiting

    def _look(self, mode: str, runner: Held, config: Config) -> None:
        seen = self.looks[config.name]
        first = self._pilot.look("baseline", runner, config)
        if wrong := self._wrong(runner, config):
            if not mode:
                raise MachineFault(f"the baseline gives wrong results here: {wrong}")
            seen.refused[mode] = f"gives wrong results: {wrong}"
            return
        more = [self._pilot.again("baseline", runner, config, first) for _ in range(LOOKS - 1)]
        seen.times[mode] = [plan.call_ns for plan in (first, *more)]

    def _wrong(self, runner: Held, config: Config) -> str:
        """Describe the error of a call on new inputs; empty if it is correct."""
        calls = self._meter.draw(0, config, 3, 1)
        return self._assessor.wrong_by_itself(calls[0], runner.batch(inputs(calls)).outputs[0])
