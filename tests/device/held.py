"""What verifying a call takes of memory: as the judge counts it, and as an allocator sees it.

    python held.py PLATFORM OUT.json [TASK...]

On ``cuda`` and ``rocm`` with the configs that are timed there and the device's own allocator; on
``cpu`` with those of ``cpu`` and the events of PyTorch's profiler.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "rules/harness/tools"), str(ROOT / "kabuild/sandbox")]

import torch
from base import shapes
from base.seeds import Seeds
from base.spec import Spec
from base.tensors import torch_dtype
from perf.oracle_memory import Verification
from terms.perf import PerfPolicy
from terms.policy import DEFAULT
from torch.profiler import ProfilerActivity, profile
from truth.assessment import Call
from truth.judge import Judge

from tests.testkit.perf_specs import NoRunners, specs_of

CPU = "cpu"


def measure(platform: str, tasks: Sequence[str], device: str) -> dict[str, Any]:
    """By task and config: bytes counted, whether all were, bytes taken, and whether that holds."""
    found = {}
    for label, spec in specs_of(platform, tasks):
        judge = Judge.assemble(spec, NoRunners(), PerfPolicy())
        rows = {}
        for config in spec.configs:
            counted = Verification.of(judge, spec.signature, config)
            taken = _taken(_verifying(judge, spec, config), device)
            rows[config.name] = {
                "counted_bytes": counted.bytes,
                "all_counted": counted.counted,
                "taken_bytes": taken,
                "holds": taken <= counted.bytes,
            }
        found[label] = rows
    return found


def _verifying(judge: Judge, spec: Spec, config: Any) -> Callable[[], None]:
    """What verifying a call does, with inputs that are there already."""
    generator = Seeds("", "", "held").generator("held", config.name, 0)
    inputs = judge.oracle.inputs(config, generator) | judge.oracle.state(config, generator)
    outputs = {
        argument.name: torch.zeros(
            shapes.shape(argument, config.dims),
            dtype=torch_dtype(shapes.dtype_name(argument, config)),
        )
        for argument in spec.signature.results
    }

    def work() -> None:
        call = Call(config, DEFAULT, inputs, judge.oracle.expected(config, inputs))
        judge.assessor.measured([call], [outputs])
        judge.assessor.overs(call, outputs)

    return work


def _taken(work: Callable[[], None], device: str) -> int:
    """The most bytes that ``work`` had at a time, besides those that were there."""
    if device != CPU:
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        work()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as recorded:
        work()
    held = most = 0
    assert recorded.profiler is not None
    for event in recorded.profiler.kineto_results.events():
        if event.name() == "[memory]":
            held += event.nbytes()
            most = max(most, held)
    return most


def main() -> int:
    """Write what was found; 1 where more was taken than counted."""
    platform, out, *tasks = sys.argv[1:]
    device = CPU if platform == CPU else "cuda"
    torch.set_default_device(device)
    found = measure(platform, tasks or ["//tasks/..."], device)
    Path(out).write_text(json.dumps(found, indent=1))
    return int(not all(row["holds"] for rows in found.values() for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
