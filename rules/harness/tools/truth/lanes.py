"""Pairs of runners that work in parallel.

A Triton program recompiles its kernel for each kind of sizes, inside a call and on one processor.
Meanwhile the device and the other processors are idle. So untimed judging on a device runs in
several lanes. A case's position determines its lane, so that each process gets the same calls in
every run. Large cases run alone: memory has room for only one of them, and their sizes are
compiled ahead. All lanes share the device's memory, so ``judge.py`` accepts a possible lack of
memory only from a batch that runs alone.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import ParamSpec

from base.program import CandidateFault, Config
from gpu import session

from truth.assessment import Call, Tensors
from truth.proof import Proof, Proving

Given = ParamSpec("Given")
Ran = list[Tensors | CandidateFault]
"""The outputs, or the fault, of each call of a batch."""

Results = Callable[[], tuple[Ran, Ran]]
"""Waits for the results of the baseline and the candidate on one batch. Raises MachineFault."""

MOST = 3
_PROCESSORS = 4  # per lane: two compilers, and the tools that these start
_FREE_BYTES = 8 << 30  # device memory per lane: two contexts and the tensors of a case
_LARGE_BYTES = 256 << 20  # of the inputs of a batch


def affordable() -> int:
    """How many lanes fit this machine's processors and the device's free memory."""
    processors = len(os.sched_getaffinity(0)) // _PROCESSORS
    return max(1, min(MOST, processors, session.free_bytes() // _FREE_BYTES))


def is_large(calls: Sequence[Call]) -> bool:
    """Whether a batch of these calls needs the device's memory to itself."""
    return sum(x.nbytes for call in calls for x in call.inputs.values()) > _LARGE_BYTES


def let_go(error: BaseException | None) -> None:
    """Free what an error's frames hold: the lane in which it was raised keeps the error itself."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__cause__ or error.__context__


def _freeing(run: Callable[Given, Ran], *given: Given.args, **more: Given.kwargs) -> Ran:
    """What ``run`` returns. If it raises an error, nothing of its frames is held from then on.

    Several lanes may fail at once, and the other errors are looked at after the rerun of the first.
    """
    try:
        return run(*given, **more)
    except BaseException as error:
        let_go(error)
        raise


@dataclass(frozen=True)
class Lane:
    """The runners of one lane: the candidate's, called through ``proof``, and the baseline's."""

    baseline: Proving
    proof: Proof

    def begin(self, config: Config, calls: Sequence[Call], pool: ThreadPoolExecutor) -> Results:
        """Start a batch on both sides."""
        inputs = [call.inputs for call in calls]
        ran = pool.submit(_freeing, self.baseline.run_each, config, inputs)
        made = pool.submit(_freeing, self.proof.run_each, config, calls)

        def results() -> tuple[Ran, Ran]:
            wait((ran, made))  # neither may still run when the other's fault is raised
            return ran.result(), made.result()

        return results

    def run(self, config: Config, calls: Sequence[Call]) -> tuple[Ran, Ran]:
        """Run a batch on one side, then on the other. Raises MachineFault."""
        ran = self.baseline.run_each(config, [call.inputs for call in calls])
        return ran, self.proof.run_each(config, calls)


def pool(lanes: int) -> ThreadPoolExecutor:
    """Threads for both sides of ``lanes``; they make their tensors on the device."""
    return ThreadPoolExecutor(2 * lanes, "lane", session.compute_there)
