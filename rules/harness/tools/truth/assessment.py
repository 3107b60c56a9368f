"""Judges one call's outputs: whether all were written, and are close enough to the oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from base import shapes
from base.outputs import Outputs
from base.program import Config, Signature
from base.tensors import torch_dtype
from terms.reasons import Reason
from terms.tolerance import CAP, FACTOR, Bound
from torch import Tensor

from truth import comparison, distributions, tolerance
from truth.compared import Compared, Measured
from truth.comparison import Comparison
from truth.finding import Finding, severity
from truth.oracle import Moved, Oracle, TaskFault, size
from truth.samples import MOST_TIMED, Samples

Tensors = Mapping[str, Tensor]
ELEMENTS_TOGETHER = 1 << 22
"""The elements of an output from which on a device is busier than the host that directs it."""

MOST_TOGETHER = 128
_SINGLE = ("f16", "bf16", "f32")  # dtypes whose tolerances single precision can resolve


@dataclass(frozen=True)
class Call:
    """One call with known inputs and true outputs."""

    config: Config
    distribution: str
    inputs: Tensors
    expected: Tensors


class Assessor:
    """Judges outputs by one task's oracle and tolerances.

    Args:
        timed: whether outputs are those of timed calls, of which there are many: then sampled
            outputs are tested in a stretch.
    """

    def __init__(
        self,
        oracle: Oracle,
        signature: Signature,
        bounds: Mapping[str, Bound],
        compare: Mapping[str, Comparison],
        *,
        factor: float = FACTOR,
        cap: float = CAP,
        timed: bool = False,
    ) -> None:
        self._oracle = oracle
        self._signature = signature
        self._bounds = bounds
        self._compares = compare
        if oracle.structured and any(
            item.kind != comparison.ELEMENTWISE for item in compare.values()
        ):
            raise TaskFault("reference.py has a check() and 'compare' is set: remove one of them")
        if self.sampled and not oracle.distributed:
            raise TaskFault("reference.py has no function 'cdf', which sampled outputs need")
        self._factor = factor
        self._cap = cap
        most = MOST_TIMED if timed else 0
        self.samples = Samples(oracle, signature, bounds, self.sampled, most)

    @property
    def sampled(self) -> Mapping[str, str]:
        """The sampled outputs, each with the name of its seed's input."""
        kinds = self._compares.items()
        return {name: how.argument for name, how in kinds if how.kind == comparison.SAMPLED}

    def defined(self, call: Call) -> bool:
        """Whether the oracle has an answer.

        Inputs that we changed may have none, such as 0 / 0. For the task's own inputs any answer
        counts, NaN included.
        """
        return call.distribution not in distributions.CHANGES or not any(
            tensor.is_floating_point() and bool(tensor.isnan().any())
            for tensor in call.expected.values()
        )

    def require_answer(self, call: Call) -> None:
        """Raise TaskFault if finite inputs have no finite answer: no candidate could be right.

        A task with its own check or with non-finite inputs defines itself what is right, so it is
        not tested. Infinities among finite values are an answer.
        """
        if self._oracle.structured or not all(map(_is_finite, call.inputs.values())):
            return
        for name, value in call.expected.items():
            if name in self.sampled or not value.is_floating_point() or not value.numel():
                continue
            if bool(value.isnan().any()) or not bool(value.isfinite().any()):
                found = "NaN" if bool(value.isnan().any()) else "no finite value"
                self._oracle.refuse(
                    f"reference() returned {found} in '{name}' ({size(value.shape)}) for finite "
                    f"inputs of {call.config.name}: no kernel can be judged by it"
                )

    def excesses(
        self, call: Call, outputs: Tensors, names: Sequence[str] | None = None
    ) -> dict[str, float]:
        """The largest error of each output, or of those of ``names``, in allowances."""
        if names is None:
            names = [a.name for a in self._signature.results if a.name not in self.sampled]
        return {n: float(self._compare(call, n, outputs[n]).largest().item()) for n in names}

    def excesses_if_right(self, call: Call, outputs: Tensors) -> Mapping[str, float] | None:
        """``excesses`` if all outputs are right without any slack; else None.

        Also None for a task with its own check or sampled outputs.
        """
        if self._oracle.structured or self.sampled:
            return None
        if any(self._written(call, name, outputs[name]) for name in self.measures):
            return None
        found = self.excesses(call, outputs)
        return found if all(excess <= 1.0 for excess in found.values()) else None

    def wrong_by_itself(self, call: Call, outputs: Tensors) -> str:
        """One line on how a baseline is wrong despite slack for its own error; empty if right.

        A task's own check gives no slack.
        """
        own = {} if self._oracle.structured else self.excesses(call, outputs)
        finding = self.assess(call, outputs, own)
        if finding.reason is None:
            return ""
        lines = (finding.detail or finding.reason.value).splitlines()
        return f"{'; '.join(line.strip() for line in lines)}, in {call.config.name}"

    def overs(self, call: Call, outputs: Tensors) -> list[Tensor]:
        """The exact largest error of each of ``measures``, as scalar tensors on their device."""
        return [self._compare(call, name, outputs[name]).largest() for name in self.measures]

    def assess(self, call: Call, outputs: Tensors, baseline: Mapping[str, float]) -> Finding:
        """Judge one call's outputs, given the baseline's error of each output in allowances.

        An output missing from ``baseline`` gets no slack.
        """
        for argument in self._signature.results:
            if (finding := self._written(call, argument.name, outputs[argument.name])) is not None:
                return finding
        if self._oracle.structured:
            said = self._oracle.check(call.config, call.inputs, outputs, call.expected)
            return _explained(Finding(Reason.WRONG_RESULT, said) if said else Finding(), outputs)
        moved = Moved(self._oracle, call.config, call.inputs, call.expected)
        found = [
            self._near(call, argument.name, outputs[argument.name], baseline, moved)
            for argument in self._signature.results
        ]
        return _explained(max(found, key=severity), outputs)

    @property
    def measures(self) -> tuple[str, ...]:
        """The outputs whose error is a number: not sampled, nor judged by the task's own check."""
        if self._oracle.structured:
            return ()
        return tuple(a.name for a in self._signature.results if a.name not in self.sampled)

    def together(self, outputs: Tensors) -> int:
        """The number of calls with outputs of these sizes to measure at once."""
        largest = max((outputs[name].numel() for name in self.measures), default=1)
        return max(1, min(MOST_TOGETHER, ELEMENTS_TOGETHER // max(1, largest)))

    def measured(self, calls: Sequence[Call], outputs: Sequence[Tensors]) -> Tensor:
        """The excess of each of ``measures``, then each one's number of unwritten elements.

        An excess is right to 1 %, and exact where ``measured_exactly`` says so. Doubles [calls,
        2 * measures] on the outputs' device, for calls of one config; the host does not wait.
        """
        if not self.measures:
            return torch.zeros(len(calls), 0).double()
        calls = [replace(call, expected=_own(call.expected, len(calls))) for call in calls]
        overs, unwritten = [], []
        for name in self.measures:
            got = _stacked([made[name] for made in outputs])
            expected = _stacked([call.expected[name] for call in calls])
            overs.append(self._largest(calls, name, got, expected).double())
            unwritten.append(self._unwritten(calls[0], name, got, expected))
        return torch.stack([*overs, *unwritten], dim=1)

    def measured_exactly(self, call: Call) -> frozenset[str]:
        """The outputs whose errors ``measured`` gives exactly."""
        return frozenset(name for name in self.measures if not self._is_quick(call, name))

    def _is_quick(self, call: Call, name: str) -> bool:
        if self._compares[name].kind != comparison.ELEMENTWISE or self._bound(call, name).exact:
            return False
        return self._dtype(call, name) in _SINGLE

    def _largest(self, calls: Sequence[Call], name: str, got: Tensor, expected: Tensor) -> Tensor:
        if not got.numel():
            return torch.zeros(len(got), device=got.device)
        dtype, bound = self._dtype(calls[0], name), self._bound(calls[0], name)
        kind = self._compares[name].kind
        if self._is_quick(calls[0], name):
            return tolerance.quick_excess(got, expected, dtype, bound)
        if kind == comparison.QUANTISED:
            return comparison.most_steps(got, expected, dtype)
        if kind == comparison.EXACT:
            return comparison.any_different(got, expected)
        if kind == comparison.ELEMENTWISE and bound.exact:
            return tolerance.per_call(tolerance.mismatches(got, expected)).amax(1)
        found = zip(calls, got, strict=True)
        return torch.stack([self._compare(call, name, made).largest() for call, made in found])

    def allowed(self, name: str, baseline: Mapping[str, float]) -> float:
        """How many allowances an output may be off by, given the baseline's error."""
        if not self._compares[name].tolerant:
            return 1.0
        return tolerance.slack(baseline.get(name, 0.0), self._factor, self._cap)

    def judged_alone(self, calls: Sequence[Call], outputs: Sequence[Tensors]) -> Finding | None:
        """What the task's own check, or that of draws, finds by itself; None if all are right."""
        if self._oracle.structured:
            checked = (self.assess(*pair, {}) for pair in zip(calls, outputs, strict=True))
            return next((finding for finding in checked if not finding.ok), None)
        for name in self.sampled:
            made = [(call, of[name]) for call, of in zip(calls, outputs, strict=True)]
            written = (self._written(call, name, got) for call, got in made)
            if finding := next(filter(None, written), None):
                return finding
            if wrong := self.samples.first_wrong(made, name):
                return self.drawn_wrong(calls[wrong[0]], name, wrong[1])
        return None

    def drawn_wrong(self, call: Call, name: str, said: str) -> Finding:
        """The finding for a complaint about a sampled output."""
        return Finding(Reason.WRONG_RESULT, f"output '{name}' ({self._kind(call, name)}): {said}")

    def share_right(self, call: Call, outputs: Tensors) -> float:
        """The largest share of right elements in any output, from 0 to 1.

        Counts only elements that would be wrong if nothing were written. Unwritten memory may be
        zero, which is close enough for most of a peaked softmax, or poison, which is NaN.
        """
        shares = [0.0]
        for argument in self._signature.results:
            got = outputs[argument.name]
            if argument.name in self.sampled:
                right = self.samples.convincing(call, argument.name, got)
                shares.append(float(right))
                continue
            compared = self._compare(call, argument.name, got)
            empty = self._compare(call, argument.name, torch.zeros_like(got))
            shares.append(compared.share_right(empty))
        return max(shares)

    def _written(self, call: Call, name: str, got: Tensor) -> Finding | None:
        if not got.is_floating_point() and not self._compares[name].positional:
            return None  # any value may be right here; wrong ones are found later
        mask = tolerance.unwritten(got, call.expected[name], self._dtype(call, name))
        count = int(mask.sum().item())
        if not count:
            return None
        first = ", ".join(str(int(i)) for i in torch.nonzero(mask)[0])
        return Finding(
            Reason.INCOMPLETE_OUTPUT,
            f"output '{name}' was left unwritten in {count} of {got.numel()} elements "
            f"({self._kind(call, name)})\n  first at [{first}]",
        )

    def _unwritten(self, call: Call, name: str, got: Tensor, expected: Tensor) -> Tensor:
        if not got.is_floating_point() and not self._compares[name].positional:
            return torch.zeros(len(got), device=got.device).double()  # see ``_written``
        mask = tolerance.unwritten(got, expected, self._dtype(call, name))
        return tolerance.per_call(mask).sum(1).double()

    def _near(
        self, call: Call, name: str, got: Tensor, baseline: Mapping[str, float], moved: Moved
    ) -> Finding:
        if name in self.sampled:
            said = self.samples.complaint(call, name, got)
            return self.drawn_wrong(call, name, said) if said else Finding()
        compared = self._compare(call, name, got)
        if not (how := self._compares[name]).tolerant:
            return self._finding(call, name, compared, 1.0)
        slack = tolerance.slack(baseline.get(name, 0.0), self._factor, self._cap)
        finding = self._finding(call, name, compared, slack)
        if finding.ok or self._bound(call, name).exact or how.kind == comparison.SORTED:
            return finding
        return self._finding(call, name, *self._conditioned(call, name, compared, slack, moved))

    def _conditioned(
        self, call: Call, name: str, compared: Compared, slack: float, moved: Moved
    ) -> tuple[Compared, float]:
        """Compare again, with allowance for how the problem itself amplifies rounding.

        Rounding of the inputs widens the tolerance of all elements. Rounding of the steps of a
        single-precision computation widens the tolerance of the elements that it moves. This costs
        further runs of the oracle, so it is done only if an output is too far off.

        Rounding of the inputs to TF32 widens only the tolerance of the elements that it moves, too:
        that of all has the tolerance of TF32 already, and more would let coarser dtypes pass.
        """
        if not self._oracle.coarse(call.config):
            typical = compared.largest_of(moved.by_inputs[name])
            slack = max(slack, tolerance.slack(typical, self._factor, self._cap))
        inputs, steps = moved.by_inputs[name].view(-1), moved.by_steps[name].view(-1)
        dtype, measure = self._dtype(call, name), compared.measure

        def measured(got: Tensor, expected: Tensor, of: slice) -> Measured:
            allowed = measure(got, expected, of)[1]
            most = torch.maximum(inputs[of], steps[of])
            allowed = torch.maximum(allowed * slack, self._factor * most)
            return tolerance.excess(got, expected, dtype, allowed), allowed

        return replace(compared, measure=measured), 1.0

    def _compare(self, call: Call, name: str, got: Tensor) -> Compared:
        expected, dtype, bound = (
            call.expected[name],
            self._dtype(call, name),
            self._bound(call, name),
        )
        how = self._compares[name]
        match how.kind:
            case comparison.EXACT:
                return Compared.strictly(got, expected, comparison.different)
            case comparison.QUANTISED:
                return Compared(got, expected, lambda g, e, _: comparison.steps(g, e, dtype))
            case comparison.TOPK_INDICES:
                over = comparison.choices(got, expected, call.inputs[how.argument])
                return Compared.whole(got, expected, over)
            case comparison.SORTED:
                got, expected = comparison.in_order(got), comparison.in_order(expected)
        if bound.exact:
            return Compared.strictly(got, expected, tolerance.mismatches)
        return Compared.within(got, expected, dtype, bound)

    def _finding(self, call: Call, name: str, compared: Compared, slack: float) -> Finding:
        worst = compared.worst(name, slack)
        if worst is None or worst.excess <= 1.0:
            return Finding(worst=worst)
        unwanted = not math.isfinite(worst.got) and math.isfinite(worst.expected)
        reason = Reason.NON_FINITE if unwanted else Reason.WRONG_RESULT
        index = ", ".join(map(str, worst.index))
        return Finding(
            reason,
            f"output '{name}' differs from the reference ({self._kind(call, name)})\n"
            f"  worst at [{index}]: expected {worst.expected:.6g}, got {worst.got:.6g} "
            f"(tolerance {worst.tolerance:.2g})",
            worst,
        )

    def _dtype(self, call: Call, name: str) -> str:
        argument = next(a for a in self._signature.results if a.name == name)
        return shapes.dtype_name(argument, call.config)

    def _bound(self, call: Call, name: str) -> Bound:
        return self._bounds[self._dtype(call, name)]

    def _kind(self, call: Call, name: str) -> str:
        dtype = str(torch_dtype(self._dtype(call, name))).rpartition(".")[2]
        return f"{dtype}, {size(call.expected[name].shape)}"


def larger(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """By output, the larger of two errors."""
    return {name: max(one.get(name, 0.0), other.get(name, 0.0)) for name in {*one, *other}}


def _is_finite(tensor: Tensor) -> bool:
    wide = tensor.float() if tensor.itemsize == 1 else tensor  # 8-bit floats lack arithmetic
    return not tensor.is_floating_point() or bool(wide.isfinite().all())


def _explained(finding: Finding, outputs: Tensors) -> Finding:
    """Add the cause of a wrong result, if the judge has seen it."""
    if finding.ok or not isinstance(outputs, Outputs) or not outputs.reused:
        return finding
    names = " and ".join(f"'{name}'" for name in sorted(outputs.reused))
    why = f"a later call returned the same memory for {names}: each call must allocate its own"
    return replace(finding, detail=f"{finding.detail}\n  {why}")


def _own(answer: Tensors, calls: int) -> Tensors:
    """The answer, computed once; copied beside others, as a reference may use its memory again."""
    if calls == 1:
        return dict(answer)
    return {name: tensor.clone() for name, tensor in answer.items()}


def _stacked(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors of all calls as one: [calls, ...]."""
    return tensors[0].unsqueeze(0) if len(tensors) == 1 else torch.stack([*tensors])
