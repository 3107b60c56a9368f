"""``model_compiled.py MODEL.py OUT.json``: times a model after ``torch.compile``.

The model as it is and the compiled one are timed in turns, in one process. Their ratio, and its
interval, are those of the judge's clock, with rounds in the place of processes. With
``--device=MODULE`` both run on that device, by its own clock; else ``--clang`` is the compiler.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from modelled.clocks import Clock, clock_of
from modelled.facts import write_facts
from modelled.inductor import (
    NotCompiledError,
    compiled,
    device_kernels,
    kernels,
    set_up,
    set_up_device,
    told,
)
from modelled.user_model import UserModel, device_of, load
from perf import confidence

SCHEMA = 1
_ROUNDS, _CALLS = 9, 5
_SECONDS = 4.0
_SEED = 20260803


def compare(path: Path, clang: str, device: str = "cpu") -> dict[str, Any]:
    """The facts of a model; with ``absent``, the sentence that says why there are no others.

    Raises ModelError.
    """
    model = load(path, device)
    try:
        with torch.no_grad():
            if device == "cpu":
                set_up(clang)
            else:
                set_up_device()
            fast = compiled(model.module, model.arguments)
            sides = _timed(model, fast, clock_of(device))
            arguments = model.arguments
            find = kernels if device == "cpu" else device_kernels
            rows = find(lambda: fast(*arguments))
    except NotCompiledError as error:
        return {"schema": SCHEMA, "absent": str(error)}
    ratio = confidence.ratio(sides[1], sides[0], _SEED)
    return {
        "schema": SCHEMA,
        "absent": "",
        "torch": str(torch.__version__),
        "eager_seconds": confidence.typical_time(sides[0]),
        "seconds": confidence.typical_time(sides[1]),
        "speedup": ratio.speedup.figure,
        "speedup_low": ratio.low,
        "speedup_high": ratio.high,
        "kernels": told(rows),
    }


def _timed(
    model: UserModel, fast: Callable[..., Any], clock: Clock
) -> tuple[list[list[float]], list[list[float]]]:
    """Seconds of calls by round, of the model as it is and of the compiled one."""
    sides: tuple[Callable[..., Any], ...] = (model.module, fast)

    def taken(call: Callable[..., Any], arguments: Sequence[Any]) -> float:
        return clock.seconds(lambda: call(*arguments))[0]

    for call in sides:
        taken(call, model.arguments)
    once = max(sum(taken(call, model.arguments) for call in sides), 1e-6)
    calls = max(2, min(_CALLS, int(_SECONDS / once / _ROUNDS)))
    times: tuple[list[list[float]], list[list[float]]] = ([], [])
    for number in range(_ROUNDS):
        arguments = model.draw(number)
        for call, rounds in zip(sides, times, strict=True):
            taken(call, arguments)
            rounds.append([taken(call, arguments) for _ in range(calls)])
    return times


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the facts."""
    parser = argparse.ArgumentParser(description="a model after torch.compile")
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--clang", default="", help="the directory of the ziglang package")
    parser.add_argument("--device", default="", help="the module that says PyTorch's device")
    options = parser.parse_args(arguments)
    write_facts(
        options.out, lambda: compare(options.model, options.clang, device_of(options.device))
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
