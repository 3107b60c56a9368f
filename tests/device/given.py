"""Times given kernels on the config of each task that takes longest at the roof, by a light clock.

    python given.py PLATFORM OUT.json [TASK...]

Kernels of HIP are what the compile gate has left below ``out/``. A reading is the mean of a few
calls in a row, each with other inputs and outputs, so that as a rule caches hold none of them,
behind work that lasts until all are launched; what is told is the median of the readings. By task:
the config, nanoseconds of a call, the readings' spread, the calls of a reading, whether the host
could not launch them in time, the bytes and operations of a call, and the largest error of its
outputs in units of the tolerance, which sampled outputs lack; or why there are none. A task that
has only ``begun`` is the one that ended the process.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "rules/harness/tools"), str(ROOT / "kabuild/sandbox")]

import torch
from base import shapes
from base.program import Config
from base.seeds import Seeds
from base.spec import Spec
from base.tensors import torch_dtype
from kernel_calls import library_call, loaded
from perf.plausibility import traffic
from perf.verification import Verifier
from runners.config_memory import scalar
from terms.perf import PerfPolicy
from terms.policy import DEFAULT
from triton.errors import TritonError
from truth.assessment import Call
from truth.judge import Judge
from truth.oracle import TaskFault

from kabuild.base.own_files import write_own
from tests.tasks.declared import all_tasks
from tests.tasks.headroom import roof_ns
from tests.testkit.perf_specs import NoRunners, specs_of

CPU = "cpu"
_READINGS, _MOST_CALLS = 7, 20
_CACHED = 150 << 20
"""Bytes that no cache of a GPU holds."""
_MOST_SETS = 64
_FILLER = 4096
"""Rows of a product of float32 that takes a GPU about 2.5 ms, in which calls are launched."""
_LAUNCHING = 2e-3
_LONG = 0.1
"""Seconds of the calls of a reading: a single one may take longer."""

Entry = Callable[[Sequence[Any], Sequence[Any]], None]
"""Calls a kernel with inputs and outputs."""


@dataclass(frozen=True)
class Readings:
    """Times of one call in ns, in ascending order.

    Attributes:
        calls: the calls of each reading.
        host: whether the time of the host counts, as it launches more slowly than they may wait.
    """

    ns: Sequence[float]
    calls: int
    host: bool


class Clock:
    """Times calls by a device's events, or on ``cpu`` by the host's clock."""

    def __init__(self, device: str) -> None:
        self._on_device = device != CPU
        rows = _FILLER if self._on_device else 1
        self._filler, self._made = torch.randn(rows, rows), torch.empty(rows, rows)

    def readings_ns(self, call: Callable[[int], None]) -> Readings:
        """Time calls in a row, of which ``call`` gets the number."""
        self._wait()
        began = time.perf_counter()
        call(0)
        launched = time.perf_counter() - began
        self._wait()
        took = time.perf_counter() - began
        calls = max(1, min(_MOST_CALLS, int(_LAUNCHING / launched), int(_LONG / took)))
        found = sorted(self._reading_ns(call, calls) for _ in range(_READINGS))
        return Readings(found, calls, host=self._on_device and launched > _LAUNCHING)

    def _reading_ns(self, call: Callable[[int], None], calls: int) -> float:
        if not self._on_device:
            began = time.perf_counter()
            for number in range(calls):
                call(number)
            return (time.perf_counter() - began) * 1e9 / calls
        event: Any = torch.cuda.Event
        first, last = (event(enable_timing=True) for _ in range(2))
        torch.mm(self._filler, self._filler, out=self._made)
        first.record()
        for number in range(calls):
            call(number)
        last.record()
        self._wait()
        return float(first.elapsed_time(last)) * 1e6 / calls

    def _wait(self) -> None:
        if self._on_device:
            torch.cuda.synchronize()


_FAULTS = (RuntimeError, OSError, TypeError, ValueError, AttributeError, TritonError, TaskFault)


def measure(platform: str, tasks: Sequence[str], device: str) -> Iterator[tuple[str, Any]]:
    """Each task's label twice: with that it has begun, and with what was found."""
    clock = Clock(device)
    declared = {task.label: task for task in all_tasks()}
    for label, spec in specs_of(platform, tasks):
        task = label.partition(":")[0]
        matrices = declared[task].multiplies
        yield task, {"begun": True}
        try:
            yield task, _measured(task, spec, clock, matrices=matrices)
        except _FAULTS as error:
            yield task, {"error": f"{type(error).__name__}: {error}".partition("\n")[0][:200]}


def _measured(task: str, spec: Spec, clock: Clock, *, matrices: bool) -> dict[str, Any]:
    judge = Judge.assemble(spec, NoRunners(), PerfPolicy())
    config, moved, flops = _longest(spec, matrices=matrices)
    generator = Seeds("", "", "given").generator("given", config.name, 1)
    drawn = judge.oracle.inputs(config, generator)
    call = Call(config, DEFAULT, drawn, judge.oracle.expected(config, drawn))
    entry = _entry(task, spec, config)
    count = min(_MOST_SETS, 1 + _CACHED // moved)
    sets = [_tensors(spec, config, drawn) for _ in range(count)]
    entry(*sets[0])
    found = _results(spec, *sets[0])
    (look,) = Verifier(judge).look([call], [found])
    readings = clock.readings_ns(lambda number: entry(*sets[number % count]))
    middle = statistics.median(readings.ns)
    return {
        "config": config.name,
        "given_ns": round(middle, 1),
        "spread": round((readings.ns[-2] - readings.ns[1]) / middle, 4),
        "calls": readings.calls,
        "host": readings.host,
        "bytes": moved,
        "flops": flops,
        "excess": {name: _told(excess) for name, excess in look.excess.items()},
        "whole": look.whole,
    }


def _told(excess: float) -> float | str:
    return round(excess, 3) if math.isfinite(excess) else str(excess)


def _longest(spec: Spec, *, matrices: bool) -> tuple[Config, int, int]:
    """The config that takes longest at the roof, with its bytes and operations."""
    known = [
        (config, traffic(spec.signature, config), int(shapes.evaluate(spec.flops, config.dims)))
        for config in spec.configs
    ]
    return max(known, key=lambda one: roof_ns(one[0].name, *one[1:], matrices=matrices))


def _tensors(spec: Spec, config: Config, drawn: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    inputs = [drawn[argument.name].clone() for argument in spec.signature.inputs]
    outputs = [
        torch.zeros(
            shapes.shape(argument, config.dims),
            dtype=torch_dtype(shapes.dtype_name(argument, config)),
        )
        for argument in spec.signature.outputs
    ]
    return inputs, outputs


def _results(spec: Spec, inputs: Sequence[Any], outputs: Sequence[Any]) -> dict[str, Any]:
    named = zip((*spec.signature.inputs, *spec.signature.outputs), (*inputs, *outputs), strict=True)
    by_name = {argument.name: tensor for argument, tensor in named}
    return {argument.name: by_name[argument.name] for argument in spec.signature.results}


def _entry(task: str, spec: Spec, config: Config) -> Entry:
    package, name = ROOT / task.removeprefix("//"), task.rpartition("/")[2]
    scalars = dict(scalar(pair, config) for pair in spec.signature.scalars)
    dims = {dim: config.dims[dim] for dim in spec.signature.dims}
    if spec.candidate.abi == "python":
        function = getattr(loaded(package / f"{name}.py"), spec.candidate.entry)
        return lambda inputs, outputs: function(*inputs, *outputs, **scalars, **dims)
    library = Path("out") / package.relative_to(ROOT) / f"{name}.compile/kernel.so"
    device = torch.get_default_device().type
    made = library_call(
        library.absolute(), spec.candidate.entry, config.dtype, scalars, dims, device
    )
    return lambda inputs, outputs: made([*inputs, *outputs])


def main() -> int:
    """Write what was found, after each task."""
    platform, out, *tasks = sys.argv[1:]
    device = CPU if platform == CPU else "cuda"
    torch.set_default_device(device)
    found = {}
    for task, row in measure(platform, tasks or ["//tasks/..."], device):
        found[task] = row
        write_own(Path(out), json.dumps(found, indent=1).encode())
        if device != CPU and "begun" not in row:
            torch.cuda.synchronize()  # raises where a kernel has broken the device for this process
            torch.cuda.empty_cache()
    return 0


if __name__ == "__main__":
    sys.exit(main())
