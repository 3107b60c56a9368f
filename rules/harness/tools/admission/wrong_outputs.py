"""Fabricated wrong outputs, which a task's comparison must not accept.

Each starts from the oracle's own outputs, spoils one and leaves the others correct, so that the
comparison of every output is tested. Only computing from half-precision inputs spoils all outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from base import shapes
from base.program import Config
from base.tensors import torch_dtype
from torch import Tensor
from truth.assessment import Assessor, Call, Tensors
from truth.oracle import TaskFault

from admission.subject import Observed, Subject

HALVED = ("f32", "f64")
_WIDE = (torch.float32, torch.float64)
TAIL = 100
_FEWEST = 2
_SEEDS = 64  # calls whose draws of a reference are tested together
_HALF_LIMIT = 6e4
_ANOTHER_REST = "99 % and an earlier call's rest"

Slack = Mapping[str, float]
Fake = Callable[[Call, Call], Tensor | None]


def too_tolerant(subject: Subject, assessor: Assessor, slacks: Mapping[str, list[Slack]]) -> str:
    """The fakes that pass the comparison for every draw of some visible config.

    Args:
        slacks: by config, the baseline's error for each draw, in allowances.
    """
    found: list[str] = []
    for observed in subject.observed:
        config, slack, sampled = observed.config, slacks[observed.config.name], assessor.sampled
        for name, outputs in _wrong_outputs(subject, config, observed.calls, sampled):
            if not _passes(assessor, observed.calls, slack, outputs):
                continue
            if not _seen_together(subject, assessor, observed, name):
                found.append(f"{name} passes for {config.name}")
    return "\n".join(found)


def _seen_together(subject: Subject, assessor: Assessor, observed: Observed, fake: str) -> bool:
    """Whether many draws reveal a fake that few do not."""
    if not assessor.sampled:
        return False
    calls = _reseeded(subject, assessor, observed)
    outputs = dict(_wrong_outputs(subject, observed.config, calls, assessor.sampled))[fake]
    made = [(call, of) for number, call in enumerate(calls) if (of := outputs(number)) is not None]
    return bool(made) and any(
        assessor.samples.together([(call, of[name]) for call, of in made], name)
        for name in assessor.sampled
    )


def truth_fails(subject: Subject, assessor: Assessor) -> str:
    """Why the oracle's own outputs, rounded to their dtypes, fail; empty if they pass."""
    for name in sorted(subject.spec.quantised):
        if _is_rounded(subject, name):
            return (
                f"output '{name}' is quantised, and reference() returned it in whole numbers of a "
                f"floating-point dtype: return what is to be rounded to them"
            )
    for observed in subject.observed:
        for call in observed.calls:
            finding = assessor.assess(call, true(subject, call), {})
            if not finding.ok:
                return f"{finding.detail}\n  in {call.config.name}"
    return _draws_fail(subject, assessor)


def _is_rounded(subject: Subject, output: str) -> bool:
    """Whether an integer output is returned as whole numbers of a floating-point dtype."""
    calls = [call for observed in subject.observed for call in observed.calls]
    found = [call.expected[output] for call in calls]
    return not _typed(subject, calls[0], output, found[0]).is_floating_point() and all(
        one.is_floating_point() and bool((one == one.round()).all()) for one in found
    )


def _draws_fail(subject: Subject, assessor: Assessor) -> str:
    """Why many draws of the oracle do not follow its own ``cdf``; empty if they do.

    As the stage ``samples`` of correctness, with fewer calls that differ only in their seeds.
    """
    for observed in subject.observed if assessor.sampled else ():
        calls = _reseeded(subject, assessor, observed)
        for name in assessor.sampled:
            drawn = [(call, true(subject, call)[name]) for call in calls]
            if said := assessor.samples.together(drawn, name):
                return f"output '{name}' of the reference: {said}\n  in {observed.config.name}"
    return ""


def _reseeded(subject: Subject, assessor: Assessor, observed: Observed) -> tuple[Call, ...]:
    """The first call with many seeds."""
    first = observed.calls[0]
    inputs = [subject.inputs(first.config, draw) for draw in range(_SEEDS)]
    seeds = [{name: one[name] for name in assessor.sampled.values()} for one in inputs]
    calls = [replace(first, inputs={**first.inputs, **seed}) for seed in seeds]
    return tuple(replace(c, expected=subject.expected(c.config, c.inputs)) for c in calls)


def true(subject: Subject, call: Call) -> dict[str, Tensor]:
    """The oracle's outputs, rounded to their declared dtypes."""
    return {name: _typed(subject, call, name, value) for name, value in call.expected.items()}


def _passes(
    assessor: Assessor,
    calls: tuple[Call, ...],
    slack: list[Slack],
    outputs: Callable[[int], Tensors | None],
) -> bool:
    """Whether one fake passes for every draw. A fake that does not apply does not pass."""
    for index, call in enumerate(calls):
        made = outputs(index)
        if made is None or not assessor.assess(call, made, slack[index]).ok:
            return False
    return True


def _wrong_outputs(
    subject: Subject, config: Config, calls: Sequence[Call], sampled: Collection[str]
) -> Iterator[tuple[str, Callable[[int], Tensors | None]]]:
    """Each fake by name, with the function for its outputs.

    ``sampled`` outputs lack some fakes: so few draws reveal neither precision nor source.
    """

    def spoiling(output: str, fake: Fake) -> Callable[[int], Tensors | None]:
        def outputs(index: int) -> Tensors | None:
            call = calls[index]
            spoilt = fake(call, calls[index - 1])
            if spoilt is None:
                return None
            return {**true(subject, call), output: _typed(subject, call, output, spoilt)}

        return outputs

    for argument in subject.signature.results:
        fakes = _for_output(subject, argument.name)
        if argument.name in sampled:
            del fakes[_ANOTHER_REST]
        for name, fake in fakes.items():
            yield f"{name} as '{argument.name}'", spoiling(argument.name, fake)
        dtype = shapes.dtype_name(argument, config)
        if dtype in HALVED and argument.name not in sampled:
            rounded = _rounded_output(argument.name)
            yield f"a half-precision '{argument.name}'", spoiling(argument.name, rounded)
    if config.dtype in HALVED and len(sampled) < len(subject.signature.results):
        yield "a computation from half-precision inputs", lambda i: _from_half(subject, calls[i])


def _for_output(subject: Subject, output: str) -> dict[str, Fake]:
    """The fakes of one output that apply to every dtype."""
    fakes: dict[str, Fake] = {
        "zero": lambda call, _: torch.zeros_like(call.expected[output]),
        "its mean": lambda call, _: _level(call.expected[output], torch.mean),
        "its median": lambda call, _: _level(call.expected[output], torch.median),
        "another call's result": lambda _, other: other.expected[output],
        "99 % and zeros": lambda call, _: _tail(call.expected[output], None),
        _ANOTHER_REST: lambda call, other: _tail(call.expected[output], other.expected[output]),
    }
    for argument in subject.signature.inputs:
        fakes[f"input '{argument.name}'"] = _copying(argument.name, output)
    return fakes


def _copying(source: str, output: str) -> Fake:
    def copy(call: Call, _: Call) -> Tensor | None:
        """The input's first elements, in the output's shape."""
        if source not in call.inputs:
            return None
        given, wanted = call.inputs[source].reshape(-1), call.expected[output]
        if given.numel() < wanted.numel():
            return None
        return given[: wanted.numel()].reshape(wanted.shape)

    return copy


def _rounded_output(output: str) -> Fake:
    return lambda call, _: _halved(call.expected[output])


def _from_half(subject: Subject, call: Call) -> Tensors | None:
    """All outputs, computed exactly from inputs in half precision; None if they already are.

    Inputs declared in half precision keep their values, whatever the config's dtype.
    """
    given = {name: _halved(t) if t.dtype in _WIDE else t for name, t in call.inputs.items()}
    if all(_same(given[name], tensor) for name, tensor in call.inputs.items()):
        return None
    try:
        expected = subject.expected(call.config, given)
    except TaskFault:
        return None
    return true(subject, Call(call.config, call.distribution, call.inputs, expected))


def _same(one: Tensor, other: Tensor) -> bool:
    return bool(((one == other) | ((one != one) & (other != other))).all())  # noqa: PLR0124 - NaN


def _halved(tensor: Tensor) -> Tensor:
    """The tensor rounded to float16, or to bfloat16 if float16 would overflow."""
    finite = tensor[torch.isfinite(tensor)].abs()
    overflows = finite.numel() > 0 and float(finite.max().item()) > _HALF_LIMIT
    return tensor.to(torch.bfloat16 if overflows else torch.float16).to(tensor.dtype)


def _level(values: Tensor, level: Callable[[Tensor], Tensor]) -> Tensor | None:
    """A tensor of one value: the mean or the median of the finite elements.

    For one element, both are the element itself, which would be correct.
    """
    if values.numel() < _FEWEST:
        return None
    finite = values[torch.isfinite(values)].double()
    constant = float(level(finite).item()) if finite.numel() else 0.0
    return torch.full(values.shape, constant, dtype=torch.float64)


def _tail(values: Tensor, rest: Tensor | None) -> Tensor:
    """The values, with the last hundredth (at least one element) from ``rest`` or zero."""
    flat = values.reshape(-1).clone()
    kept = flat.numel() - math.ceil(flat.numel() / TAIL)
    flat[kept:] = 0 if rest is None else rest.reshape(-1)[kept:]
    return flat.reshape(values.shape)


def _typed(subject: Subject, call: Call, output: str, values: Tensor) -> Tensor:
    argument = next(a for a in subject.signature.results if a.name == output)
    wanted = torch_dtype(shapes.dtype_name(argument, call.config))
    if values.is_floating_point() and not wanted.is_floating_point:
        values = values.round()
    return values.to(wanted)
