"""How many calls a batch behind the gate is to have, and how that is tried."""

# mypy: allow-untyped-defs, allow-untyped-calls, disable-error-code="arg-type"

from __future__ import annotations

from types import SimpleNamespace

import device_doubles
import pytest
from base.program import Batch, Gated
from perf.device_plan import FEW, Need, Wishes
from perf.gate_samples import GATE_CLOCK, HOST_CLOCK, GateSample
from perf.pilot import Pilot

CONFIG = device_doubles.config("f32 n=1")
WISHES = Wishes(1e5, 0, 64, 1 << 40, {CONFIG.name: Need(0, 1, 1)})


class Meter:
    """Calls of 1 us behind the gate, of which ``queue`` fit; notes what runners are asked."""

    def __init__(self, *, repeatable=True, host_seconds=(0.0,), queue=64, clock=GATE_CLOCK):
        self.repeatable = repeatable
        self.asked = []
        self.prepared = []
        self._host_seconds = [*host_seconds]
        self._queue = queue
        self._clock = clock

    def host_seconds(self, config):
        return self._host_seconds.pop(0) if len(self._host_seconds) > 1 else self._host_seconds[0]

    def draw(self, number, config, batch, size, attempt=0):
        return [SimpleNamespace(inputs={"batch": batch, "at": at}) for at in range(size)]

    def prepare(self, side, runner, config, slots):
        self.prepared.append(slots)

    def calibrate_first(self, side, runner, config):
        pass

    def gated(self, runner, calls):
        return runner.gated([call.inputs for call in calls]) if self._clock == GATE_CLOCK else None

    def sampled(self, side, slots, made):
        return self._sample(slots)

    def by_host(self, side, runner, slots, whole):
        return self._sample(slots)

    def _sample(self, slots):
        return GateSample(slots, self._clock, 1_000 * slots, 1_000 * slots, 0, 0)

    def runner(self):
        def gated(inputs, *, repeats=1):
            count = len(inputs) * repeats
            self.asked.append((len({given["at"] for given in inputs}), repeats))
            return Gated(({},) * len(inputs), count <= self._queue, 0, 0, 0, 0)

        return SimpleNamespace(gated=gated, batch=lambda inputs: Batch(({},) * len(inputs), 0, 0))


def plan(meter, side="candidate", pilot=None):
    pilot = pilot or Pilot(meter, device_doubles.SIGNATURE, WISHES)
    return pilot.plan(side, meter.runner(), CONFIG)


def test_the_queue_is_tried_with_one_call_that_is_made_again():
    meter = Meter(queue=20)

    assert plan(meter).slots == 16  # of 64 that would fill the wanted time, halved until they fit
    assert (1, 64) in meter.asked
    assert meter.asked[-1] == (1, 16)


def test_calls_that_change_their_inputs_are_each_made_once():
    """An original of AgentKernelArena's counts up in its input, where its next row goes."""
    meter = Meter(repeatable=False, queue=20)

    assert plan(meter).slots == 16
    assert meter.asked[-1] == (16, 1)
    assert {repeats for _, repeats in meter.asked} == {1}


def test_the_host_s_time_limits_both_sides_to_equally_many_calls():
    """It is known better later; where calls wait for the host, fewer take longer each."""
    meter = Meter(host_seconds=(0.02, 0.001), clock=HOST_CLOCK)
    pilot = Pilot(meter, device_doubles.SIGNATURE, WISHES)

    assert [plan(meter, side, pilot).slots for side in ("baseline", "candidate")] == [12, 12]


@pytest.mark.parametrize(
    ("seconds", "slots"), [(0.0, 64), (0.01, 25), (0.1, FEW), (0.2, 5), (0.6, 1), (3.0, 1)]
)
def test_a_batch_has_a_few_calls_unless_the_host_takes_a_second(seconds, slots):
    assert WISHES.slots(device_doubles.SIGNATURE, CONFIG, 1_000.0, seconds) == slots
