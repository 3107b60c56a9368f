"""The boundary of tasks whose solutions return results, or write them into given memory.

It is beside the solution in the runner, as a task's ``adapter.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import candidate  # type: ignore[import-not-found]
import torch

Declared = Mapping[str, tuple[torch.dtype, Sequence[str]]]


def destinations(
    inputs: int, outputs: Declared, sizes: Mapping[str, int], *, zeroed: bool
) -> Callable[..., Any]:
    """The solution's ``run`` as a function that returns its results.

    If ``run`` takes as many arguments as there are ``inputs`` and ``outputs``, it writes the
    results into new memory, which is zero if ``zeroed``. Axes of outputs are expressions of
    ``sizes``.
    """
    run = candidate.run
    kinds = {name: kind for name, (kind, _) in outputs.items()}
    shapes = [
        [int(eval(axis, {"__builtins__": {}}, dict(sizes))) for axis in axes]  # noqa: S307 - ours
        for _, axes in outputs.values()
    ]
    make = torch.zeros if zeroed else torch.empty

    def returning(*arguments: Any) -> Any:
        return ordered(run(*arguments), kinds)

    def writing(*arguments: Any) -> Any:
        device = next(a.device for a in arguments if isinstance(a, torch.Tensor))
        pairs = zip(shapes, kinds.values(), strict=True)
        memory = [make(shape, dtype=kind, device=device) for shape, kind in pairs]
        run(*arguments, *memory)
        return memory[0] if len(memory) == 1 else tuple(memory)

    return writing if _parameters(run) == inputs + len(outputs) else returning


def ordered(found: Any, kinds: Mapping[str, torch.dtype]) -> Any:
    """Results in the order of ``kinds``, also from a dict; numbers become tensors.

    Raises ValueError.
    """
    if isinstance(found, dict):
        found = tuple(found[name] for name in kinds)
    if not isinstance(found, tuple | list):
        found = (found,)
    if len(found) != len(kinds):
        raise ValueError(f"run returned {len(found)} results, expected {len(kinds)}")
    pairs = zip(found, kinds.values(), strict=True)
    made = tuple(torch.tensor(v, dtype=k) if _number(v) else v for v, k in pairs)
    return made[0] if len(made) == 1 else made


def _number(value: Any) -> bool:
    return isinstance(value, bool | int | float)


def _parameters(run: Callable[..., Any]) -> int:
    """How many arguments a function takes by position; 0 if unknown."""
    try:
        parameters = inspect.signature(run).parameters.values()
    except (TypeError, ValueError):
        return 0
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(parameter.kind in plain for parameter in parameters)
