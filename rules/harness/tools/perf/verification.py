"""Verifies all calls of a batch with one wait for the device.

Each ``item()`` waits for all earlier work of the device, some 300 us. So the error and the
unwritten share of every output go into one tensor on the device, which is read once per batch.
Small outputs of many calls are measured together: each step of one costs the host 10 us.
Wrong calls are judged again, one by one, for a readable message.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from base.program import CandidateFault
from truth.assessment import Call, Tensors
from truth.finding import Finding
from truth.judge import Judge
from truth.lazy_outputs import bytes_of

KEPT = 8
KEPT_BYTES = 4 << 30
SURE = 0.9  # of the tolerance: beyond that, single precision cannot decide


@dataclass
class Verified:
    """The findings on one side's calls of a config.

    Attributes:
        excess: by output, the largest error, in allowances.
        worst: by output, the ``KEPT`` worst calls whose error exceeded a bare allowance,
            with their outputs. The final allowance also depends on the other side, which may come
            later. Of large calls there are fewer: as many as ``KEPT_BYTES`` hold, and at least one.
        finding: a fault that does not depend on the other side.
    """

    excess: dict[str, float] = field(default_factory=dict)
    worst: dict[str, list[tuple[float, Call, Tensors]]] = field(default_factory=dict)
    finding: Finding | None = None

    def note(self, name: str, excess: float) -> None:
        """Record the error of another call's output."""
        self.excess[name] = max(excess, self.excess.get(name, 0.0))

    def keep(self, name: str, excess: float, call: Call, outputs: Tensors) -> None:
        """Keep a call, if it is among the worst, until the allowance is known."""
        kept = self.worst.setdefault(name, [])
        most = max(1, min(KEPT, KEPT_BYTES // max(1, bytes_of(call.inputs) + bytes_of(outputs))))
        if len(kept) < most or excess > kept[-1][0]:
            del kept[most - 1 :]
            copies = {output: tensor.clone() for output, tensor in outputs.items()}
            kept.append((excess, call, copies))
            kept.sort(key=lambda item: -item[0])


@dataclass(frozen=True)
class Look:
    """A first look at the outputs of one call.

    Attributes:
        excess: by output, its error in allowances, to 1 %.
        whole: whether this is true of all outputs, and each of them was written.
        exact: the outputs whose error is not to 1 % but exact.
    """

    excess: Mapping[str, float]
    whole: bool
    exact: frozenset[str] = frozenset()

    @property
    def decides(self) -> bool:
        """Whether it says of each output on which side of a bare allowance it is."""
        return all(
            name in self.exact or _decides(excess, whole=True)
            for name, excess in self.excess.items()
        )


class Verifier:
    """Verifies batches of one task's calls."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._assessor = judge.assessor

    def add(
        self, verified: Verified, calls: Sequence[Call], outputs: Sequence[Tensors], *, whole: bool
    ) -> None:
        """Verify the outputs of a batch.

        With ``whole``, everything is checked, as for a candidate. Otherwise only the size of the
        errors is recorded, which is all that is needed of a baseline.
        """
        if whole and verified.finding is None:
            verified.finding = self._assessor.judged_alone(calls, outputs)
        names = self._assessor.measures
        if not calls or not names:
            return
        for call, made, row in zip(calls, outputs, self._measured(calls, outputs), strict=True):
            excesses, unwritten = row[: len(names)], row[len(names) :]
            if whole and verified.finding is None and any(unwritten):
                verified.finding = self._assessor.assess(call, made, {})
            sure = self._assessor.measured_exactly(call)
            unsure = [
                name
                for name, quick in zip(names, excesses, strict=True)
                if name not in sure and not _decides(quick, whole=whole)
            ]
            exact = self._assessor.excesses(call, made, unsure) if unsure else {}
            for name, quick in zip(names, excesses, strict=True):
                excess = exact.get(name, quick)
                verified.note(name, excess)
                if whole and excess > 1.0:
                    verified.keep(name, excess, call, made)

    def refuse(self, candidate: Verified, baseline: Verified, where: str) -> None:
        """Raise CandidateFault if a candidate's calls are wrong, given the baseline's error."""
        finding = candidate.finding
        if finding is None:
            found = (
                self._judge.given_the_baseline(call, made, baseline.excess)
                for name, kept in candidate.worst.items()
                for excess, call, made in kept
                if excess > SURE * self._assessor.allowed(name, baseline.excess)
            )
            finding = next((each for each in found if not each.ok), None)
        if finding is not None and finding.reason is not None:
            detail = finding.detail or finding.reason.value
            raise CandidateFault(finding.reason, f"{detail}\n  {where}")

    def look(self, calls: Sequence[Call], outputs: Sequence[Tensors]) -> list[Look]:
        """A first look at each call."""
        names = self._assessor.measures
        if not calls or not names or self._assessor.sampled:
            return [Look({}, whole=False) for _ in calls]
        found = []
        for call, row in zip(calls, self._measured(calls, outputs), strict=True):
            excesses, unwritten = row[: len(names)], row[len(names) :]
            told = dict(zip(names, excesses, strict=True))
            found.append(Look(told, not any(unwritten), self._assessor.measured_exactly(call)))
        return found

    def is_right(self, look: Look, baseline: Mapping[str, float]) -> bool:
        """Whether a call is clearly right, given the baseline's error of each output.

        If not, it may still be right: that takes a closer look.
        """
        allowed = self._assessor.allowed
        return look.whole and all(
            excess <= (1.0 if name in look.exact else SURE) * allowed(name, baseline)
            for name, excess in look.excess.items()
        )

    def finding(self, call: Call, outputs: Tensors, baseline: Mapping[str, float]) -> Finding:
        """The finding on one call: by a first look, if that is enough."""
        if self.is_right(self.look([call], [outputs])[0], baseline):
            return Finding()
        return self._assessor.assess(call, outputs, baseline)

    def _measured(self, calls: Sequence[Call], outputs: Sequence[Tensors]) -> list[list[float]]:
        """The assessor's measurements of each call, read with one wait."""
        rows, first = [], 0
        while first < len(calls):
            last = self._last_together(calls, outputs, first)
            rows.append(self._assessor.measured(calls[first:last], outputs[first:last]))
            first = last
        found: list[list[float]] = torch.cat(rows).tolist()
        return found

    def _last_together(self, calls: Sequence[Call], outputs: Sequence[Tensors], first: int) -> int:
        """The end of the calls from ``first`` on that are measured together."""
        most = first + self._assessor.together(outputs[first])
        others = range(first + 1, min(most, len(calls)))
        config = calls[first].config
        return next((index for index in others if calls[index].config != config), others.stop)


def _decides(excess: float, *, whole: bool) -> bool:
    """Whether an error that is known to 1 % says enough; of a candidate, whether it exceeds 1."""
    return math.isfinite(excess) and not (whole and SURE <= excess <= 1 / SURE)
