"""Whether an oracle really computes in double precision.

An oracle that drops to single precision somewhere inside answers in steps. Two small moves of its
inputs, one twice the other, move its outputs by nothing or by whole float32 roundings. In double
precision the second move changes the outputs twice as much as the first.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import torch
from base.program import Config
from torch import Generator, Tensor
from truth.oracle import TaskFault, Tensors

from admission.subject import Subject

_BASE = 2.0**-10
_STEP = 2.0**-32
_STRAIGHT = 0.1


def refuses_float64(subject: Subject) -> str:
    """Why the reference fails with float64, although it accepts the task's own dtypes."""
    for config in subject.configs:
        inputs = subject.inputs(config, 0)
        try:
            subject.expected(config, inputs)
        except TaskFault as fault:
            try:
                subject.oracle.compute(config, inputs)
            except TaskFault:
                continue
            return f"the reference accepts {config.dtype} inputs, but fails for float64: {fault}"
    return ""


def not_float64(subject: Subject, sampled: AbstractSet[str]) -> str:
    """The output that is not in double precision; empty if all are, or are ``sampled``."""
    for config in subject.configs:
        if found := _of_config(subject, config, sampled):
            return f"{found} ({config.name})"
    return ""


def _of_config(subject: Subject, config: Config, sampled: AbstractSet[str]) -> str:
    generator = torch.Generator(torch.get_default_device()).manual_seed(0)
    given = {name: _off_the_grid(t, generator) for name, t in subject.inputs(config, 0).items()}
    directions = {name: _signs(tensor, generator) for name, tensor in given.items()}
    points = [_moved(given, directions, times * _STEP) for times in (0, 1, 2)]
    answers = [subject.oracle.compute(config, point) for point in points]
    for argument in subject.signature.results:
        if argument.name in sampled:
            continue
        base, near, far = (answer[argument.name] for answer in answers)
        if base.is_floating_point() and (found := _of_output(argument.name, base, near, far)):
            return found
    return ""


def _of_output(name: str, base: Tensor, near: Tensor, far: Tensor) -> str:
    if base.dtype != torch.float64:
        kind = str(base.dtype).rpartition(".")[2]
        return f"output '{name}' of the reference is {kind} for float64 inputs"
    once, twice = (torch.nan_to_num(moved - base, 0.0, 0.0, 0.0) for moved in (near, far))
    if not bool(once.any()) and not bool(twice.any()):
        whole = torch.nan_to_num(base, 0.0, 0.0, 0.0)
        if bool((whole == whole.round()).all()):
            return ""  # counts and signs, which are exact in any precision
        return f"output '{name}' ignores digits beyond float32: the reference computes in float32"
    bent = float((twice - 2.0 * once).square().sum().sqrt().item())
    moved = float(twice.square().sum().sqrt().item())
    if bent <= _STRAIGHT * moved:
        return ""
    return f"output '{name}' changes in steps of float32: the reference computes partly in float32"


def _off_the_grid(tensor: Tensor, generator: Generator) -> Tensor:
    """The values with digits beyond float32; equal values stay equal."""
    if not tensor.is_floating_point():
        return tensor
    wide = tensor.double()
    drawn = torch.rand(tensor.shape, generator=generator, dtype=torch.float64)
    return wide * (1.0 + _BASE * (0.5 + drawn))


def _signs(tensor: Tensor, generator: Generator) -> Tensor:
    return torch.randint(0, 2, tensor.shape, generator=generator).double() * 2.0 - 1.0


def _moved(inputs: Tensors, directions: Tensors, step: float) -> dict[str, Tensor]:
    return {
        name: tensor * (1.0 + step * directions[name]) if tensor.is_floating_point() else tensor
        for name, tensor in inputs.items()
    }
