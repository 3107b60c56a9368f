"""What the judge's own work takes for one call of each task, without any program.

    python verifying.py PLATFORM OUT.json [TASK...]

By task and config, milliseconds: to draw the inputs, to compute the true outputs, for a first look
at these outputs as a program would write them, and for a closer look. A perf gate has hundreds of
calls of each config, so an oracle of 40 ms is most of its time. Of the configs of ``cpu`` on
``cpu``, of those that are timed on a device otherwise.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "rules/harness/tools"), str(ROOT / "kabuild/sandbox")]

import torch
from base import shapes
from base.program import Config
from base.seeds import Seeds
from base.spec import Spec
from base.tensors import torch_dtype
from terms.perf import PerfPolicy
from terms.policy import DEFAULT
from truth.assessment import Call
from truth.judge import Judge

from tests.testkit.perf_specs import NoRunners, specs_of

CPU = "cpu"
TIMES = 3  # of which the last ones count: the first one of a process compiles and allocates
SHOWN = 30

T = TypeVar("T")


def measure(platform: str, tasks: Sequence[str], device: str) -> Iterator[tuple[str, Any]]:
    """Each task's label, and its milliseconds by config, or why there are none."""
    wait = torch.cuda.synchronize if device != CPU else _nothing
    for label, spec in specs_of(platform, tasks):
        try:
            judge = Judge.assemble(spec, NoRunners(), PerfPolicy())
            yield label, {each.name: _costs(judge, spec, each, wait) for each in spec.configs}
        except torch.OutOfMemoryError as error:
            yield label, {"left out": str(error).partition("\n")[0]}


def table(found: Mapping[str, Any]) -> list[str]:
    """The configs whose calls take the longest, a line each."""
    rows = [
        (sum(costs.values()), label, name, costs)
        for label, configs in found.items()
        for name, costs in configs.items()
        if isinstance(costs, dict)
    ]
    longest = sorted(rows, key=lambda row: -row[0])[:SHOWN]
    return [
        f"{total:8.2f} ms  {label.partition(':')[0]} {name}: "
        + ", ".join(f"{what} {took:.2f}" for what, took in costs.items())
        for total, label, name, costs in longest
    ]


def _costs(judge: Judge, spec: Spec, config: Config, wait: Callable[[], None]) -> dict[str, float]:
    rounds = [_once(judge, spec, config, wait, number) for number in range(TIMES)]
    return {what: statistics.median(row[what] for row in rounds[1:]) for what in rounds[0]}


def _once(
    judge: Judge, spec: Spec, config: Config, wait: Callable[[], None], number: int
) -> dict[str, float]:
    generator = Seeds("", "", "verifying").generator("verifying", config.name, number)
    took: dict[str, float] = {}

    def timed(what: str, work: Callable[[], T]) -> T:
        wait()
        began = time.perf_counter()
        result = work()
        wait()
        took[what] = (time.perf_counter() - began) * 1e3
        return result

    state = judge.oracle.state(config, generator)
    inputs = timed("draw", lambda: judge.oracle.inputs(config, generator)) | state
    expected = timed("oracle", lambda: judge.oracle.expected(config, inputs))
    outputs = {
        argument.name: expected[argument.name].to(torch_dtype(shapes.dtype_name(argument, config)))
        for argument in spec.signature.results
    }
    call = Call(config, DEFAULT, inputs, expected)
    timed("first look", lambda: judge.assessor.measured([call], [outputs]))
    timed("closer look", lambda: judge.assessor.assess(call, outputs, {}))
    return took


def _nothing() -> None:
    """What is done has been waited for."""


def main() -> int:
    """Write what was found, after each task, and print the longest."""
    platform, out, *tasks = sys.argv[1:]
    device = CPU if platform == CPU else "cuda"
    torch.set_default_device(device)
    found = {}
    for label, costs in measure(platform, tasks or ["//tasks/..."], device):
        found[label] = costs
        Path(out).write_text(json.dumps(found, indent=1))
    print("\n".join(table(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
