"""What Nsight Compute says that the experts' kernels take on the configs of their tasks.

    python durations.py WORKPLACE OUT.json

calls itself under ``ncu``: every call has a stream of its own, so that its kernels can be told from
others'. Caches are flushed before each kernel, as the profiler does by itself.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import nsight
import roofline

COUNTER = "gpu__time_duration.sum"
CALLS = 3
_CHILD, _DONE = "--child", "done"
_SECONDS = 200.0

Call = Callable[[], None]


def measure(root: Path) -> dict[str, Any]:
    """By task and config: how many kernels a call has, and their ns together, the median call."""
    program = nsight.find()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        command = [sys.executable, __file__, _CHILD, str(root)]
        launches, said = nsight.profile(program, [COUNTER], command, log, _SECONDS)
    *lines, last = said.splitlines() or [""]
    if last != _DONE:
        raise nsight.ProfilerError(f"the calls ended after {lines or 'none'}")
    calls = [name for line in lines for name in [json.loads(line)] * CALLS]
    usual = launches[0].stream  # where the first inputs were drawn
    found = [
        list(group)
        for stream, group in itertools.groupby(launches, lambda launch: launch.stream)
        if stream != usual
    ]
    if len(found) != len(calls):
        raise nsight.ProfilerError(f"{len(calls)} calls were made, and {len(found)} are in the log")
    times: dict[str, list[float]] = {}
    kernels: dict[str, int] = {}
    for name, group in zip(calls, found, strict=True):
        times.setdefault(name, []).append(sum(one.counters[COUNTER] for one in group))
        kernels[name] = len(group)
    return {
        name: {"kernels": kernels[name], "ns": statistics.median(found)}
        for name, found in times.items()
    }


def _make_calls(root: Path) -> None:
    """Call each expert, first on the usual stream and then on others; name the config."""
    import torch

    torch.set_default_device("cuda")
    ctypes.CDLL("libcudart.so.13", mode=ctypes.RTLD_GLOBAL)
    for label, config, call in _calls(root):
        call()
        torch.cuda.synchronize()
        for _ in range(CALLS):
            stream: Any = torch.cuda.Stream  # untyped
            with torch.cuda.stream(stream()):
                call()
            torch.cuda.synchronize()
        print(json.dumps(f"{label} {config}"), flush=True)
    print(_DONE, flush=True)


def _calls(root: Path) -> Iterator[tuple[str, str, Call]]:
    import kernel_calls

    for label, task in roofline.tasks(root):
        package = root / label.removeprefix("//")
        verdict = json.loads(
            (root / f"out/{label.removeprefix('//')}/{task['name']}.perf/verdict.json").read_bytes()
        )
        named = {case["config"]: case for case in verdict["cases"]}
        reference = kernel_calls.loaded(package / task["reference"])
        for config in task["configs"]:
            name = roofline.named(task, config, named)
            yield label, name, _call(root, label, task, config, reference)


def _call(
    root: Path, label: str, task: Mapping[str, Any], config: Mapping[str, Any], reference: Any
) -> Call:
    """One expert on fresh inputs of one config."""
    import kernel_calls
    import torch

    dtype = roofline.dtype(task, config)
    dims = {dim: config[dim] for dim in task["dims"]}
    scalars = {name: config.get(name, value) for name, value in task.get("scalars", {}).items()}
    asked = {**dims, **scalars, "dtype": _torch(dtype), "distribution": "normal"}
    drawn = reference.inputs(asked, torch.Generator(device="cuda").manual_seed(1))
    inputs = [drawn[name].contiguous() for name in task["inputs"]]
    outputs = [
        torch.empty(shape, dtype=_torch(kind))
        for kind, shape in (roofline.tensor(text, dtype, dims) for text in task["outputs"].values())
    ]
    entry = task.get("entry", task["name"])
    if task["kernel"].endswith(".py"):
        package = root / label.removeprefix("//")
        function = getattr(
            kernel_calls.loaded(package / "solutions/expert" / task["kernel"]), entry
        )
        return lambda: function(*inputs, *outputs, **scalars, **dims)
    folder = root / f"out/{label.removeprefix('//')}/{task['name']}.compile"
    made = kernel_calls.library_call(folder / "kernel.so", entry, dtype, scalars, dims, "cuda")
    return lambda: made([*inputs, *outputs])


def _torch(name: str) -> Any:
    import torch

    names = {
        "f32": "float32",
        "f16": "float16",
        "bf16": "bfloat16",
        "f64": "float64",
        "i64": "int64",
        "i32": "int32",
        "i8": "int8",
        "u8": "uint8",
        "bool": "bool",
    }
    return getattr(torch, names[name])


def main(arguments: Sequence[str]) -> None:
    """Measure, or, as the profiler's child, make the calls."""
    if arguments[0] == _CHILD:
        return _make_calls(Path(arguments[1]))
    found = measure(Path(arguments[0]))
    Path(arguments[1]).write_text(json.dumps(found, indent=1))
    return None


if __name__ == "__main__":
    main(sys.argv[1:])
