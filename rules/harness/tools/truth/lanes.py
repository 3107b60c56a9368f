"""Pairs of runners that work beside each other.

A Triton program compiles its kernel anew for each kind of sizes, inside a call and on one
processor. A device waits meanwhile, and so do the other processors. So what is judged on a device,
and is not timed, runs in several lanes. A case's lane follows from its place among the others:
each process gets the same calls in every run. Large cases wait for the others: there is room for
one of them, and their sizes are those that are compiled ahead. All lanes share the device's memory:
``judge.py`` believes what may be a lack of it only of a batch that is alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass

from base.program import CandidateFault, Config
from gpu import session

from truth.assessment import Call, Tensors
from truth.proof import Proof, Proving

Ran = list[Tensors | CandidateFault]
"""The outputs, or the fault, of each call of a batch."""

Results = Callable[[], tuple[Ran, Ran]]
"""Waits for what the baseline and the candidate made of one batch. Raises MachineFault."""

MOST = 3
_PROCESSORS = 4  # of one lane: two compilers, and the tools that these start
_FREE_BYTES = 8 << 30  # of the device for one lane, with two contexts and the tensors of a case
_LARGE_BYTES = 256 << 20  # of the inputs of a batch


def affordable() -> int:
    """How many lanes this machine has processors and free memory of the device for."""
    processors = len(os.sched_getaffinity(0)) // _PROCESSORS
    return max(1, min(MOST, processors, session.free_bytes() // _FREE_BYTES))


def is_large(calls: Sequence[Call]) -> bool:
    """Whether a batch of these calls is to have the device's memory for itself."""
    return sum(x.nbytes for call in calls for x in call.inputs.values()) > _LARGE_BYTES


@dataclass(frozen=True)
class Lane:
    """The runners of one lane: the candidate's, which ``proof`` asks, and the baseline's."""

    baseline: Proving
    proof: Proof

    def begin(self, config: Config, calls: Sequence[Call], pool: ThreadPoolExecutor) -> Results:
        """Start a batch of both sides."""
        ran = pool.submit(self.baseline.run_each, config, [call.inputs for call in calls])
        made = pool.submit(self.proof.run_each, config, calls)

        def results() -> tuple[Ran, Ran]:
            wait((ran, made))  # neither may still run when the other's fault is raised
            return ran.result(), made.result()

        return results

    def run(self, config: Config, calls: Sequence[Call]) -> tuple[Ran, Ran]:
        """A batch of one side, then of the other. Raises MachineFault."""
        ran = self.baseline.run_each(config, [call.inputs for call in calls])
        return ran, self.proof.run_each(config, calls)


def pool(lanes: int) -> ThreadPoolExecutor:
    """Threads for both sides of ``lanes``, whose tensors are made on the device."""
    return ThreadPoolExecutor(2 * lanes, "lane", session.compute_there)
