"""Estimates for one side of a config: the time of a call, and how many calls can be queued."""

from __future__ import annotations

from collections.abc import Sequence

from base.program import Config, Signature

from perf.device_plan import PILOT_SLOTS, Wishes, fitting
from perf.gate_samples import GATE_CLOCK, HOST_CLOCK, GateSample, SidePlan
from perf.gate_turn import Held, inputs
from perf.gated import TRIES, GatedMeter
from perf.plan import SideName


class Pilot:
    """Makes estimates, which are not samples."""

    def __init__(self, meter: GatedMeter, signature: Signature, wishes: Wishes) -> None:
        self._meter = meter
        self._signature = signature
        self._wishes = wishes
        self._seconds: dict[str, float] = {}

    def look(self, side: SideName, runner: Held, config: Config) -> SidePlan:
        """Run a batch of a few calls."""
        slots = self.first_slots(config)
        self._meter.prepare(side, runner, config, slots)
        self._meter.calibrate_first(side, runner, config)
        sample = self._first(side, runner, config, slots)
        return SidePlan(sample.per_call_ns, sample.slots, sample.clock)

    def first_slots(self, config: Config) -> int:
        """The slots that ``look`` has a config loaded for."""
        return min(PILOT_SLOTS, self._wishes.slots(self._signature, config, 1.0))

    def fit_together(self, configs: Sequence[Config]) -> bool:
        """Whether the device's memory has room for first looks at all of these at once."""
        return self._wishes.fit([(config.name, self.first_slots(config)) for config in configs])

    def again(self, side: SideName, runner: Held, config: Config, seen: SidePlan) -> SidePlan:
        """Run another such batch in the same runner, with the config already loaded."""
        sample = self._first(side, runner, config, seen.slots)
        return SidePlan(sample.per_call_ns, sample.slots, sample.clock)

    def plan(self, side: SideName, runner: Held, config: Config) -> SidePlan:
        """The plan: the wanted number of calls, if all of them can wait behind the gate."""
        seen = self.look(side, runner, config)
        # Known once, so that it limits both sides to equally many calls.
        seconds = self._seconds.setdefault(config.name, self._meter.host_seconds(config))
        wanted = self._wishes.slots(self._signature, config, seen.call_ns, seconds)
        if seen.clock == HOST_CLOCK or wanted <= seen.slots:
            return SidePlan(seen.call_ns, wanted, seen.clock)
        if seen.slots == 1:  # the other calls of the first look did not fit
            wanted = min(wanted, PILOT_SLOTS // 2)
        self._meter.prepare(side, runner, config, wanted)

        def fits(count: int) -> bool:
            once = self._meter.repeatable
            calls = inputs(self._meter.draw(0, config, 2, 1 if once else count))
            for _ in range(TRIES):
                made = runner.gated(calls, repeats=count if once else 1)
                if made is not None and made.held:
                    return True
            return False

        return SidePlan(seen.call_ns, max(1, fitting(wanted, fits)), GATE_CLOCK)

    def _first(self, side: SideName, runner: Held, config: Config, slots: int) -> GateSample:
        """A batch behind the gate if possible; of one call if no more can be queued."""
        counts = [slots] * TRIES + [1] * (TRIES if slots > 1 else 0)
        for attempt, count in enumerate(counts):
            calls = self._meter.draw(0, config, 1, count, attempt)
            made = self._meter.gated(runner, calls)
            if made is not None:
                return self._meter.sampled(side, count, made)
        calls = self._meter.draw(0, config, 1, slots, len(counts))
        whole = runner.batch([call.inputs for call in calls])
        return self._meter.by_host(side, runner, slots, whole)
