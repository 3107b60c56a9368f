"""Compiles a PyTorch baseline in several processes at once.

A compiler is busy for seconds for each config, on one processor, and the device is mostly idle
meanwhile. A process that has compiled its config is stopped until it is asked to call it, so that
each config is timed as if it were alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from base.program import CandidateFault, Config
from gpu import session
from terms.reasons import Reason
from truth.assessment import Tensors
from truth.side import Side

from perf.baseline_fault import baseline_fault
from perf.gate_turn import Held, inputs
from perf.gated import GatedMeter
from perf.pilot import Pilot

MOST = 8
_FOR_THE_JUDGE = 2  # processors, as its threads wait without sleeping
_CROWDED = {Reason.OUT_OF_MEMORY, Reason.TIMEOUT, Reason.CRASH}


@dataclass(frozen=True)
class Trial:
    """A process of ``side`` that compiles one config."""

    config: Config
    side: Side


class Compiled:
    """A process that has compiled its config, or has failed to.

    Attributes:
        crowded: whether it failed for want of something that others had meanwhile.
    """

    def __init__(
        self, trial: Trial, fault: CandidateFault | None, runner: Held | None, ends: ExitStack
    ) -> None:
        self._trial = trial
        self._fault = fault
        self._runner = runner
        self._ends = ends
        self.crowded = False

    @contextmanager
    def running(self) -> Iterator[Held]:
        """The runner, which ends with the block. Raises TaskFault if it failed, or fails now."""
        try:
            with self._ends:
                if self._runner is None:
                    raise self._fault or AssertionError
                yield self._runner
        except CandidateFault as fault:
            self.crowded = fault.reason in _CROWDED
            raise baseline_fault(self._trial.side.program, fault) from fault
        finally:
            session.give_back()


@contextmanager
def together(meter: GatedMeter, pilot: Pilot, trials: Sequence[Trial]) -> Iterator[list[Compiled]]:
    """The processes of ``trials``, once all have compiled; the block takes them in turn.

    Processes that are still alive end with the block. Raises MachineFault.
    """
    drawn = {trial.config.name: trial.config for trial in trials}
    calls = {name: inputs(meter.draw(0, config, 0, 1)) for name, config in drawn.items()}
    with ExitStack() as kept:
        with (
            meter.phases.of("first_calls"),
            ThreadPoolExecutor(len(trials), "compiling", session.compute_there) as pool,
        ):
            begun = [
                pool.submit(
                    _begun, trial, pilot.first_slots(trial.config), calls[trial.config.name]
                )
                for trial in trials
            ]
        faults = [future.exception() for future in begun]
        found = []
        for trial, future, fault in zip(trials, begun, faults, strict=True):
            runner, ends = (None, ExitStack()) if fault else future.result()
            kept.push(partial(_end, ends))
            known = fault if isinstance(fault, CandidateFault) else None
            found.append(Compiled(trial, known, runner, ends))
        for fault in faults:
            if fault and not isinstance(fault, CandidateFault):
                raise fault
        yield found


def groups(pilot: Pilot, trials: Sequence[Trial]) -> list[list[Trial]]:
    """The trials in the groups for which processors and the device's memory have room."""
    most = max(1, min(MOST, len(os.sched_getaffinity(0)) - _FOR_THE_JUDGE))
    found: list[list[Trial]] = []
    for trial in trials:
        beside = [*found[-1], trial] if found else []
        if 0 < len(beside) <= most and pilot.fit_together([one.config for one in beside]):
            found[-1].append(trial)
        else:
            found.append([trial])
    return found


def _end(ends: ExitStack, *error: Any) -> None:
    """End a process that nobody asks any more; how it ends tells nothing."""
    with suppress(CandidateFault):
        ends.__exit__(*error)


def _begun(trial: Trial, slots: int, calls: Sequence[Tensors]) -> tuple[Held, ExitStack]:
    with ExitStack() as stack:
        runner = stack.enter_context(trial.side.running())
        runner.load(trial.config, slots)
        runner.batch(calls)
        return runner, stack.pop_all()  # type: ignore[return-value]
