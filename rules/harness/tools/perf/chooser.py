"""Times each mode of a PyTorch baseline on a device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from base.program import Config, MachineFault
from truth import compiled_cache
from truth.assessment import Assessor
from truth.oracle import TaskFault
from truth.side import Side

from perf.choice import COUNTED, RECORDED, Choice, Looks
from perf.compiling import Compiled, Trial, groups, together
from perf.gate_turn import Held, inputs
from perf.gated import GatedMeter
from perf.pilot import Pilot

LOOKS = 3
TUNINGS = 3
"""How often the choice of a baseline has each config tuned anew. The fastest counts.

What a compiler chooses depends on its noisy measurements: for one call on an H200, three tunings
took 17.4, 10.4 and 17.4 us.
"""

T = TypeVar("T")

_LINES = 4  # of the error that makes a mode unavailable


class Chooser:
    """Chooses among eager and compiled modes; a mode must give correct results to be timed."""

    def __init__(
        self,
        meter: GatedMeter,
        pilot: Pilot,
        assessor: Assessor,
        baseline: Side,
        configs: Sequence[Config],
        *,
        tunings: int = 1,
    ) -> None:
        self._meter = meter
        self._pilot = pilot
        self._assessor = assessor
        self._baseline = baseline
        self._configs = configs
        self._tunings = tunings
        self.looks = {config.name: Looks() for config in configs}

    def choose(self) -> Choice:
        """The fastest mode of each config. Keeps the compiler's choices for later processes.

        Raises TaskFault if the eager baseline fails, and MachineFault if its results are wrong.
        """
        self._look_at_eager()
        for mode in filter(None, COUNTED):
            self._tune(mode)
        return self.choice

    @property
    def choice(self) -> Choice:
        """The choice, by what is known so far."""
        return Choice.fastest(self._configs, self.looks)

    def compile_again(self, choice: Choice) -> bool:
        """Have fresh processes compile each config in the mode that was chosen for it.

        Returns whether all results are right again.
        """
        modes = choice.modes
        chosen = [config for config in self._configs if modes[config.name]]
        trials = [Trial(config, self._baseline.in_mode(modes[config.name])) for config in chosen]
        return all(right for _, right in self._in_turn(trials, self._is_right))

    def record(self) -> None:
        """Look at the modes that cannot be chosen, for the first config."""
        for mode in RECORDED:
            self._look_at(mode, [Trial(self._configs[0], self._baseline.in_mode(mode))])

    def _look_at_eager(self) -> None:
        with self._meter.running("baseline", self._configs[0]) as runner:
            for config in self._configs:
                found = self._look(runner, config)
                if isinstance(found, str):
                    raise MachineFault(f"the baseline {found}")
                self.looks[config.name].times[""] = found

    def _tune(self, mode: str) -> None:
        """Tune a mode for each config, several times, and keep the fastest.

        A tuning compiles only what those before it did not.
        """
        folders = [""] * len(self._configs)
        for number in range(self._tunings):
            sides = [
                self._baseline.tuning(mode, f"{number}-{place}", after)
                for place, after in enumerate(folders)
            ]
            self._look_at(mode, list(map(Trial, self._configs, sides)))
            folders = [side.cache for side in sides]
        best = (self.looks[config.name].fastest for config in self._configs)
        compiled_cache.take_choices(self._baseline.cache, filter(None, best))
        compiled_cache.forget_tunings(self._baseline.cache)

    def _look_at(self, mode: str, trials: Sequence[Trial]) -> None:
        """Time a compiled mode in each process, or note why it is not available."""
        for trial, found in self._in_turn(trials, self._times):
            self.looks[trial.config.name].note(mode, found, trial.side.cache)

    def _in_turn(
        self, trials: Sequence[Trial], ask: Callable[[Trial, Compiled], T]
    ) -> list[tuple[Trial, T]]:
        """What each process answers; one that may only have lacked what others took, alone."""
        answers = []
        waiting = groups(self._pilot, trials)
        while waiting:
            group = waiting.pop(0)
            with together(self._meter, self._pilot, group) as compiled:
                for trial, one in zip(group, compiled, strict=True):
                    answer = ask(trial, one)
                    if one.crowded and len(group) > 1:
                        waiting.append([trial])
                    else:
                        answers.append((trial, answer))
        return answers

    def _times(self, trial: Trial, compiled: Compiled) -> list[float] | str:
        try:
            with compiled.running() as runner:
                return self._look(runner, trial.config)
        except TaskFault as fault:
            return "; ".join(str(fault).splitlines()[:_LINES])

    def _is_right(self, trial: Trial, compiled: Compiled) -> bool:
        try:
            with compiled.running() as runner:
                return not self._wrong(runner, trial.config)
        except TaskFault:
            return False

    def _look(self, runner: Held, config: Config) -> list[float] | str:
        """The times of a few batches, in ns a call; or how the results are wrong."""
        first = self._pilot.look("baseline", runner, config)
        if wrong := self._wrong(runner, config):
            return f"gives wrong results here: {wrong}"
        more = [self._pilot.again("baseline", runner, config, first) for _ in range(LOOKS - 1)]
        return [plan.call_ns for plan in (first, *more)]

    def _wrong(self, runner: Held, config: Config) -> str:
        """Describe the error of a call on new inputs; empty if it is correct."""
        calls = self._meter.draw(0, config, 3, 1)
        return self._assessor.wrong_by_itself(calls[0], runner.batch(inputs(calls)).outputs[0])
