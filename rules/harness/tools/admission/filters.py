"""Filters for tasks with uninformative outputs: robust-kbench's, and two about inputs.

Each examines the oracle's outputs for several draws of each visible config, and rejects if its
property holds for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from truth.oracle import TaskFault

from admission import any_order
from admission.subject import DRAWS, Observed, Subject

LEAST = 0.01


def seeds_ignored(subject: Subject) -> str:
    """The input that ignores the generator's seed, or depends on more than the seed.

    Memory that a call overwrites may hold the same values before each call.
    """
    for config in subject.configs:
        first, again = subject.inputs(config, 0), subject.inputs(config, 0)
        for name, tensor in first.items():
            if not _equal(tensor, again[name]):
                return f"input '{name}' differs between two draws of one seed ({config.name})"
        if said := any_order.chosen(partial(subject.inputs, config, 0)):
            return (
                f"two draws of one seed differ on a GPU ({config.name}): {said}, in any order "
                "there; take the largest, say, or make each place occur once"
            )
    for argument in subject.signature.inputs:
        seen = [o for o in subject.observed if argument.name not in o.config.absent]
        fixed = seen and all(_fixed(observed, argument.name) for observed in seen)
        if fixed and not _overwritten(subject, seen, argument.name):
            return f"input '{argument.name}' is the same for {DRAWS} seeds on every visible config"
    state = [a.name for a in subject.signature.state]
    if state and all(_fixed(observed, name) for observed in subject.observed for name in state):
        return f"the state is the same for {DRAWS} seeds on every visible config"
    return ""


def not_finite(subject: Subject, sampled: AbstractSet[str]) -> str:
    """The output without finite elements, or with NaN, where any candidate's NaN would be right.

    Infinities are an answer, and so is NaN in a task with its own check.
    """
    for name, tensors in _by_output(subject):
        if all(not bool(torch.isfinite(tensor).any()) for tensor in tensors):
            return f"output '{name}' has no finite element on any visible config"
        share = max(float(tensor.isnan().double().mean().item()) for tensor in tensors)
        if share and name not in sampled and not subject.oracle.structured:
            return f"output '{name}' is NaN in {share:.2g} of its elements, of a visible config"
    return ""


def in_range(subject: Subject) -> str:
    """The output that is nearly zero everywhere."""
    for name, tensors in _by_output(subject):
        largest = max(
            float(tensor.nan_to_num(0.0, torch.inf, -torch.inf).abs().max().item())
            for tensor in tensors
        )
        if largest < LEAST:
            return f"output '{name}' never exceeds {largest:.2g} on the visible configs"
    return ""


def seed_insensitive(subject: Subject) -> str:
    """The output that hardly changes between draws."""
    for name, tensors in _by_output(subject):
        spread = max(_largest_spread(tensor, 0) for tensor in tensors)
        if spread < LEAST:
            return (
                f"output '{name}' is nearly the same for {DRAWS} seeds: its standard deviation "
                f"is at most {spread:.2g} on the visible configs"
            )
    return ""


def axis_constant(subject: Subject) -> str:
    """The axis longer than 1 along which an output is nearly constant."""
    for name, tensors in _by_output(subject):
        for axis in range(1, tensors[0].ndim):
            spreads = [_largest_spread(t, axis) for t in tensors if t.shape[axis] > 1]
            flat = bool(spreads) and max(spreads) < LEAST
            if flat and not _varies_unreduced(subject, name, axis):
                return (
                    f"output '{name}' is nearly constant along axis {axis - 1}: its standard "
                    f"deviation is at most {max(spreads):.2g} on the visible configs"
                )
    return ""


def _varies_unreduced(subject: Subject, name: str, axis: int) -> bool:
    """Whether an output is constant along an axis only because a visible config was made small."""
    whole = next((c for c in subject.spec.configs if c not in subject.configs), None)
    if whole is None:
        return False
    output = subject.expected(whole, subject.inputs(whole, 0))[name]
    return _largest_spread(output.double()[None], axis) >= LEAST


def input_ignored(subject: Subject) -> str:
    """The input that can be redrawn without changing any output; updated inputs are outputs.

    Or the scalar that can have any value of its range.
    """
    for argument in subject.signature.kept:
        seen = [o for o in subject.observed if argument.name not in o.config.absent]
        spreads = [_redrawn(subject, observed, argument.name) for observed in seen]
        if spreads and max(spreads) < LEAST:
            return (
                f"no output depends on input '{argument.name}': redrawn, it moves them by a "
                f"standard deviation of at most {max(spreads):.2g} on the visible configs"
            )
    return _scalar_ignored(subject)


def _scalar_ignored(subject: Subject) -> str:
    """The scalar with a range whose ends give the same results as its usual value."""
    for name, bounds in subject.spec.space.scalars.items():
        tried = ((seen, end) for seen in subject.observed for end in bounds)
        if not any(_depends(subject, seen, name, end) for seen, end in tried):
            return (
                f"no output depends on scalar '{name}': with {bounds[0]} and {bounds[1]}, the ends "
                f"of its range, they are the same on the visible configs"
            )
    return ""


def _depends(subject: Subject, seen: Observed, name: str, value: float) -> bool:
    """Whether some result of the observed draws changes with the value of a scalar.

    An oracle that fails with another value depends on it.
    """
    config = replace(seen.config, scalars={**seen.config.scalars, name: value})
    for call in seen.calls:
        try:
            made = subject.expected(config, call.inputs)
        except TaskFault:
            return True
        if not all(_equal(made[output], call.expected[output]) for output in made):
            return True
    return False


def _by_output(subject: Subject) -> Iterator[tuple[str, list[Tensor]]]:
    for argument in subject.signature.results:
        yield argument.name, [seen.outputs[argument.name] for seen in subject.observed]


def _overwritten(subject: Subject, seen: Sequence[Observed], name: str) -> bool:
    """Whether calls update an input, and no result depends on its previous values."""
    if name not in subject.signature.updates:
        return False
    for observed in seen:
        call = observed.calls[0]
        held = call.inputs[name]
        make = torch.zeros_like if bool(held.double().any()) else torch.ones_like
        try:
            results = subject.expected(observed.config, {**call.inputs, name: make(held)})
        except TaskFault:
            return False
        if not all(_equal(results[one], call.expected[one]) for one in results):
            return False
    return True


def _redrawn(subject: Subject, observed: Observed, name: str) -> float:
    """The largest spread of any output if one input alone is redrawn.

    An oracle that fails with another draw's input depends on that input.
    """
    first = observed.calls[0]
    outputs = [first.expected]
    for call in observed.calls[1:]:
        try:
            outputs.append(
                subject.expected(observed.config, {**first.inputs, name: call.inputs[name]})
            )
        except TaskFault:
            return float("inf")
    return max(
        _largest_spread(torch.stack([made[output].double() for made in outputs]), 0)
        for output in first.expected
    )


def _largest_spread(values: Tensor, axis: int) -> float:
    """The largest standard deviation along ``axis``; undefined ones count as 0."""
    spread = torch.nan_to_num(values.std(dim=axis), nan=0.0)
    return float(spread.max().item())


def _fixed(observed: Observed, name: str) -> bool:
    first = observed.calls[0].inputs[name]
    return all(_equal(first, call.inputs[name]) for call in observed.calls[1:])


def _equal(first: Tensor, second: Tensor) -> bool:
    both_nan = torch.isnan(first) & torch.isnan(second)
    return bool(((first == second) | both_nan).all())
