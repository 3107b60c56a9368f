"""Proves that kernels compute the results: in a batch, one call's launches have no effect.

If that call's result is right all the same, the launched kernels did not compute it. A candidate
can find out only during the call, and it may be any call of any config.

An honest candidate may keep its last result in its own memory and copy it into the next output. So
the call's result must differ from those of the calls before.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Protocol

from base.program import CandidateFault, Config
from terms.policy import DEFAULT
from terms.reasons import Reason

from truth.assessment import Assessor, Call, Tensors

SHARE = 0.5  # of an output; values that only need copying may come from a copy
_TELLING = {DEFAULT, "scaled_up", "positive", "negative"}
"""Distributions whose draws always have different results."""


class Proving(Protocol):
    """A program with its runner: ``truth.side.Side``."""

    @property
    def may_prove(self) -> bool:
        """Whether a call's launches can be left out."""

    def run(
        self, config: Config, inputs: Sequence[Tensors], left_out: int | None = None
    ) -> Sequence[Tensors]:
        """The outputs of one batch."""

    def run_each(self, config: Config, inputs: Sequence[Tensors]) -> list[Tensors | CandidateFault]:
        """The outputs, or the fault, of each call."""


class Proof:
    """Asks the candidate for proofs; stops after one caused a timeout."""

    def __init__(self, side: Proving, assessor: Assessor) -> None:
        self._side = side
        self._assessor = assessor
        self._asks = side.may_prove
        self._random = random.SystemRandom()

    def run_each(self, config: Config, calls: Sequence[Call]) -> list[Tensors | CandidateFault]:
        """The result of ``Side.run_each``, from a batch in which one call comes twice.

        A coin flip decides whether the first of the two is left out. Repeating a call saves
        computing the true outputs of another one.
        """
        inputs = [call.inputs for call in calls]
        telling = [index for index, call in enumerate(calls) if _is_telling(call)]
        if not self._asks or not telling:
            return self._side.run_each(config, inputs)
        chosen = self._random.choice(telling)
        place = self._random.randrange(chosen + 1)
        asked = [*inputs[:place], inputs[chosen], *inputs[place:]]
        left_out = place if self._random.random() < 0.5 else None
        try:
            outputs = list(self._side.run(config, asked, left_out))
        except CandidateFault as fault:
            if fault.reason is Reason.TIMEOUT:
                self._asks = False
                if left_out is None:
                    return [fault] * len(calls)
            return self._side.run_each(config, inputs)
        first = outputs.pop(place)
        try:
            if left_out is not None:
                self.check(calls[chosen], first)
        except CandidateFault as fault:
            return [fault] * len(calls)
        return list(outputs)

    def place(self, calls: Sequence[Call]) -> int | None:
        """The call to leave out of a batch of different calls; None if that would show nothing.

        The result of a left-out call is not verified. So a call that comes alone is left out only
        if a coin flip says so.
        """
        telling = [index for index, call in enumerate(calls) if _is_telling(call)]
        if not self._asks or not telling or (len(calls) == 1 and self._random.random() < 0.5):
            return None
        return self._random.choice(telling)

    def stop(self) -> None:
        """Ask for no more proofs."""
        self._asks = False

    def check(self, call: Call, outputs: Tensors) -> None:
        """Raise CandidateFault if the outputs of a left-out call are right."""
        share = self._assessor.share_right(call, outputs)
        if share > SHARE:
            what = f"{share:.0%} of an output is correct although no kernel ran"
            raise CandidateFault(Reason.KERNEL_BYPASSED, what)


def _is_telling(call: Call) -> bool:
    return call.distribution in _TELLING
