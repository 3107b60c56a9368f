"""Compiles a PyTorch baseline for several configs at once, each in a process of its own.

A compiler is busy for seconds for each config, on one processor, and the device is mostly idle
meanwhile. A process that has compiled its config is stopped until it is asked to call it, so that
each config is timed as if it were alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from base.program import CandidateFault, Config
from gpu import session
from truth.assessment import Tensors
from truth.side import Side

from perf.baseline_fault import baseline_fault
from perf.gate_turn import Held, inputs
from perf.gated import GatedMeter
from perf.pilot import Pilot

MOST = 8
_PROCESSORS = 2  # per process: its compiler, and the tools that this starts

Started = tuple[Held, ExitStack]
"""A runner, and what ends it."""


class Together:
    """Runners that have compiled one config each."""

    def __init__(self, side: Side, started: Mapping[str, Started | CandidateFault]) -> None:
        self._side = side
        self._started = dict(started)

    @contextmanager
    def running(self, config: Config) -> Iterator[Held]:
        """The runner of ``config``, which ends with the block. Raises TaskFault if it failed."""
        started = self._started.pop(config.name)
        try:
            if isinstance(started, CandidateFault):
                raise started
            runner, ended = started
            with ended:
                yield runner
        except CandidateFault as fault:
            raise baseline_fault(self._side.program, fault) from fault
        finally:
            session.give_back()


@contextmanager
def together(meter: GatedMeter, pilot: Pilot, configs: Sequence[Config]) -> Iterator[Together]:
    """A runner for each of ``configs``, all in the mode of the first one.

    Whatever the block leaves ends with it. Raises MachineFault.
    """
    side = meter.side("baseline", configs[0])
    calls = {config.name: inputs(meter.draw(0, config, 0, 1)) for config in configs}
    with ExitStack() as kept:
        with meter.phases.of("first_calls"):
            with ThreadPoolExecutor(len(configs), "compiling", session.compute_there) as pool:
                begun = {
                    config.name: pool.submit(
                        _started, side, config, pilot.first_slots(config), calls[config.name]
                    )
                    for config in configs
                }
            ended = {name: future.exception() for name, future in begun.items()}
        started: dict[str, Started | CandidateFault] = {}
        for name, fault in ended.items():
            if isinstance(fault, CandidateFault):
                started[name] = fault
            elif fault is None:
                runner, stack = begun[name].result()
                started[name] = runner, kept.enter_context(stack)
        for fault in ended.values():
            if fault is not None and not isinstance(fault, CandidateFault):
                raise fault
        yield Together(side, started)


def groups(pilot: Pilot, configs: Sequence[Config]) -> list[list[Config]]:
    """The configs in the groups in which processors and the device's memory have room for them."""
    most = max(1, min(MOST, len(os.sched_getaffinity(0)) // _PROCESSORS))
    found: list[list[Config]] = []
    for config in configs:
        beside = [*found[-1], config] if found else []
        if 0 < len(beside) <= most and pilot.fit_together(beside):
            found[-1].append(config)
        else:
            found.append([config])
    return found


def _started(side: Side, config: Config, slots: int, calls: Sequence[Tensors]) -> Started:
    with ExitStack() as stack:
        runner = stack.enter_context(side.running())
        runner.load(config, slots)
        runner.batch(calls)
        return runner, stack.pop_all()  # type: ignore[return-value]
