"""``model_compiled.py MODEL.py CLANG OUT.json``: what ``torch.compile`` makes of a model.

The model as it is and the compiled one are timed in turns, in one process. Their ratio, and its
interval, are those of the judge's clock, with rounds in the place of processes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from modelled.clocks import HostClock
from modelled.facts import write_facts
from modelled.inductor import NotCompiledError, compiled, kernels, set_up, told
from modelled.user_model import load
from perf import confidence

SCHEMA = 1
_ROUNDS, _CALLS = 9, 5
_SECONDS = 4.0
_SEED = 20260803


def compare(path: Path, clang: str) -> dict[str, Any]:
    """The facts of a model; with ``absent``, the sentence that says why there are no others.

    Raises ModelError.
    """
    model = load(path)
    try:
        with torch.no_grad():
            set_up(clang)
            fast = compiled(model.module, model.arguments)
            sides = _timed(model, fast)
            arguments = model.arguments
            rows = kernels(lambda: fast(*arguments))
    except NotCompiledError as error:
        return {"schema": SCHEMA, "absent": str(error)}
    ratio = confidence.ratio(sides[1], sides[0], _SEED)
    return {
        "schema": SCHEMA,
        "absent": "",
        "torch": str(torch.__version__),
        "eager_seconds": confidence.typical_time(sides[0]),
        "seconds": confidence.typical_time(sides[1]),
        "speedup": ratio.speedup.value,
        "speedup_low": ratio.low,
        "speedup_high": ratio.high,
        "kernels": told(rows),
    }


def _timed(model: Any, fast: Any) -> tuple[list[list[float]], list[list[float]]]:
    """Seconds of calls by round, of the model as it is and of the compiled one."""
    clock = HostClock()
    sides = (model.module, fast)

    def taken(call: Any, arguments: Any) -> float:
        return clock.whole(lambda: call(*arguments))

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


def main(model: str, clang: str, out: str) -> int:
    """Write the facts."""
    write_facts(Path(out), lambda: compare(Path(model), clang))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
