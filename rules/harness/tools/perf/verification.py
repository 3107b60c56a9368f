"""Verifies all calls of a batch with one wait for the device.

Each ``item()`` waits for all earlier work of the device, some 300 us. So the error and the
unwritten share of every output go into one tensor on the device, which is read once for the whole
batch. Wrong calls are judged again, one by one, for a readable message.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from base.program import CandidateFault
from truth.assessment import Assessor, Call, Finding, Tensors

KEPT = 8
SURE = 0.9  # of the tolerance: beyond that single precision does not decide


@dataclass
class Verified:
    """The findings of one side's calls of a config.

    Attributes:
        excess: by output, how wrong it is at most, in allowances.
        worst: by output, the calls in which it was more wrong than a bare allowance, the worst
            ``KEPT`` of them, with their outputs: what is allowed depends on the other side, too,
            which may come later.
        finding: what is wrong whatever the other side does.
    """

    excess: dict[str, float] = field(default_factory=dict)
    worst: dict[str, list[tuple[float, Call, Tensors]]] = field(default_factory=dict)
    finding: Finding | None = None

    def note(self, name: str, excess: float) -> None:
        """Record the error of an output of another call."""
        self.excess[name] = max(excess, self.excess.get(name, 0.0))

    def keep(self, name: str, excess: float, call: Call, outputs: Tensors) -> None:
        """Keep a call, if it is among the worst, until the allowance is known."""
        kept = self.worst.setdefault(name, [])
        if len(kept) < KEPT or excess > kept[-1][0]:
            copies = {output: tensor.clone() for output, tensor in outputs.items()}
            kept.append((excess, call, copies))
            kept.sort(key=lambda item: -item[0])
            del kept[KEPT:]


@dataclass(frozen=True)
class Look:
    """A first look at the outputs of one call.

    Attributes:
        excess: by output, how wrong it is, in allowances, to 1 %.
        sure: whether all is right by a clear margin, whatever another side's error allows.
    """

    excess: Mapping[str, float]
    sure: bool


class Verifier:
    """Verifies batches by one task's assessor."""

    def __init__(self, assessor: Assessor) -> None:
        self._assessor = assessor

    def add(
        self, verified: Verified, calls: Sequence[Call], outputs: Sequence[Tensors], *, whole: bool
    ) -> None:
        """Verify the outputs of a batch.

        With ``whole`` everything is, as a candidate's outputs are; else only how wrong they are,
        which is what a baseline is asked for.
        """
        if whole and verified.finding is None:
            verified.finding = self._alone(calls, outputs)
        names = self._assessor.measures
        if not calls or not names:
            return
        for call, made, row in zip(calls, outputs, self._measured(calls, outputs), strict=True):
            excesses, unwritten = row[: len(names)], row[len(names) :]
            if whole and verified.finding is None and any(unwritten):
                verified.finding = self._assessor.assess(call, made, {})
            close = [e if e < (SURE if whole else math.inf) else None for e in excesses]
            exact = self._assessor.excesses(call, made) if None in close else {}
            for name, quick in zip(names, close, strict=True):
                excess = exact[name] if quick is None else quick
                verified.note(name, excess)
                if whole and excess > 1.0:
                    verified.keep(name, excess, call, made)

    def refuse(self, candidate: Verified, baseline: Verified, where: str) -> None:
        """Raise CandidateFault if a candidate's calls are wrong, given the baseline's error."""
        finding = candidate.finding
        if finding is None:
            found = [
                self._assessor.assess(call, made, baseline.excess)
                for name, kept in candidate.worst.items()
                for excess, call, made in kept
                if excess > self._assessor.allowed(name, baseline.excess)
            ]
            finding = next((each for each in found if not each.ok), None)
        if finding is not None and finding.reason is not None:
            detail = finding.detail or finding.reason.value
            raise CandidateFault(finding.reason, f"{detail}\n  {where}")

    def look(self, calls: Sequence[Call], outputs: Sequence[Tensors]) -> list[Look]:
        """A first look at each call: those that are not ``sure`` want a closer one."""
        names = self._assessor.measures
        if not calls or not names or self._assessor.sampled:
            return [Look({}, sure=False) for _ in calls]
        found = []
        for row in self._measured(calls, outputs):
            excesses, unwritten = row[: len(names)], row[len(names) :]
            sure = all(excess < SURE for excess in excesses) and not any(unwritten)
            found.append(Look(dict(zip(names, excesses, strict=True)), sure))
        return found

    def _measured(self, calls: Sequence[Call], outputs: Sequence[Tensors]) -> list[list[float]]:
        """What the assessor measures of each call, read with one wait."""
        rows = [
            torch.stack(self._assessor.measured(call, made))
            for call, made in zip(calls, outputs, strict=True)
        ]
        found: list[list[float]] = torch.stack(rows).tolist()
        return found

    def _alone(self, calls: Sequence[Call], outputs: Sequence[Tensors]) -> Finding | None:
        """What a task's own check, or a look at what was drawn, says of each call."""
        for call, made in zip(calls, outputs, strict=True):
            if (finding := self._assessor.judged_alone(call, made)) is not None:
                return finding
        return None
