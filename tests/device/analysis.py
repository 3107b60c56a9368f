"""What is counted on the CPU beside what Nsight Compute counts: the same kernels, the same calls.

Each row is a launch, or a whole call where its launches cannot be told apart on both sides. A
figure's ``difference`` is that of the CPU from the device, in parts of the device's; of bank
conflicts, in parts of the turns of the banks.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[2] / "rules/harness/tools"))

import counted
import nsight
from base.program import Config
from base.seeds import Seeds
from base.spec import Spec, config_name, parse_spec
from differences import summary
from nsight import Profiled
from workplace import PLATFORM, Workplace

_PROGRAM = Path(__file__).with_name("profiled.py")
_GATE = "analyze"
_CALLS_AT_ONCE = 24
_ALIGNMENT = 256
_GLOBAL, _SHARED = "l1tex__t_{what}_pipe_lsu_mem_global_op_{op}.sum", "mem_shared_op_{op}.sum"
_OPERATIONS = {"load": ("ld",), "store": ("st",), "atomic": ("atom", "red")}


def _metrics() -> dict[tuple[str, str, str], tuple[str, ...]]:
    """By space, operation and figure, the counters whose sum it is."""
    found: dict[tuple[str, str, str], tuple[str, ...]] = {}
    for operation, ops in _OPERATIONS.items():
        for what in ("requests", "sectors"):
            names = tuple(_GLOBAL.format(what=what, op=op) for op in ops)
            found["global", operation, what] = names
        shared = _SHARED.format(op=ops[0])
        found["shared", operation, "requests"] = (f"smsp__inst_executed_op_shared_{ops[0]}.sum",)
        found["shared", operation, "passes"] = (f"l1tex__data_pipe_lsu_wavefronts_{shared}",)
        found["shared", operation, "conflicts"] = (f"l1tex__data_bank_conflicts_pipe_lsu_{shared}",)
    found["branches", "of warps", "divergent"] = (
        "smsp__sass_branch_targets_threads_divergent.sum",
    )
    found["memory", "at least", "read bytes"] = ("dram__bytes_read.sum",)
    return found


METRICS = _metrics()
OTHERS = (
    "dram__bytes_write.sum",
    "lts__t_sectors_op_read.sum",
    "lts__t_sectors_op_write.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed.sum",
    "smsp__sass_branch_targets.sum",
    "smsp__sass_branch_targets_threads_uniform.sum",
    "gpu__time_duration.sum",
)
"""Counters that are kept without a figure of the CPU beside them."""

Figures = dict[str, float]


@dataclass(frozen=True)
class Call:
    """One call, as it was counted on the CPU.

    Attributes:
        artifact: the digest of the library that was counted, of which its inputs are made.
        found: its entry in the analysis.
    """

    kernel: str
    artifact: str
    spec: Spec
    config: Config
    found: Mapping[str, Any] = field(hash=False)


def calls(counts: Mapping[str, Any]) -> list[Call]:
    """All calls of which the CPU has counted all. Raises SpecError for other counts."""
    made = []
    for kernel, one in sorted(counts["kernels"].items()):
        spec = parse_spec(one["spec"])
        known = {config.name: config for config in spec.configs}
        for found in one["analysis"]["calls"]:
            if found["whole"]:
                config = _reduced(spec, known[found["of"]], found["config"])
                made.append(Call(kernel, one["artifact"], spec, config, found))
    return made


def _reduced(spec: Spec, of: Config, name: str) -> Config:
    """The config of a name, made from a visible one by other dims."""
    dtype, *dims = name.split()
    sizes = {dim: int(size) for dim, _, size in (word.partition("=") for word in dims)}
    dims_of = {dim: sizes[dim] for dim in spec.signature.dims}
    assert config_name(dtype, dims_of) == name
    return Config(name, dims_of, dtype, of.scalars)


def compare(workplace: Workplace, counts: Mapping[str, Any], kept: Path) -> dict[str, Any]:
    """Compile and profile all kernels; what both sides say, and how far they are apart.

    The profiler's own tables are left below ``kept``. Batches that there is no time for are named
    in ``not_begun``, those that fail in ``failed``.
    """
    program = nsight.find()
    counted.declare(workplace)
    labels = (f"//{counted.PACKAGES}/...", f"--agent={counted.AGENT}")
    built = workplace.test(*labels, "--gates=compile")
    runtime = workplace.kabuild("build", "//toolchains/hip:cuda.runtime", PLATFORM)
    rows: list[dict[str, Any]] = []
    failed = _not_built(workplace, counts)
    made = [call for call in calls(counts) if call.kernel not in failed]
    not_begun: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        wanted = sorted({name for names in METRICS.values() for name in names} | {*OTHERS})
        metrics = nsight.known(program, wanted, home)
        for number, batch in enumerate(batches(made)):
            left = workplace.deadline - time.monotonic()
            names = " ".join(sorted({call.kernel for call in batch}))
            if left < 10:
                not_begun.append(names)
                continue
            log = kept / f"ncu-{number}.csv"
            try:
                command = [sys.executable, str(_PROGRAM), str(_write(workplace, batch, home))]
                launches, said = nsight.profile(program, metrics, command, log.absolute(), left)
                rows += _rows(batch, launches, said)
            except (nsight.ProfilerError, ValueError) as error:
                failed[names] = str(error)
    return {
        "seconds": {"compile": round(built.seconds, 2), "runtime": round(runtime.seconds, 2)},
        "counts": counts["revision"],
        "profiler": program,
        "unknown": sorted({*wanted} - {*metrics}),
        "failed": failed,
        "not_begun": not_begun,
        "summary": summary(rows),
        "rows": rows,
    }


def _not_built(workplace: Workplace, counts: Mapping[str, Any]) -> dict[str, str]:
    """By kernel, why it cannot be profiled."""
    found = {}
    for kernel, one in counts["kernels"].items():
        if counted.source_digest(workplace, kernel) != one["source"]:
            found[kernel] = "its source has changed since it was counted"
        elif not _library(workplace, kernel).is_file():
            found[kernel] = "it does not compile"
    return found


def _library(workplace: Workplace, kernel: str) -> Path:
    return workplace.output(f"{counted.PACKAGES}/{kernel}:{kernel}.compile", "kernel.so")


def batches(made: Sequence[Call]) -> Iterator[list[Call]]:
    """Calls that are profiled in one process: whole kernels, and the probes by themselves."""
    batch: list[Call] = []
    for kernel in dict.fromkeys(call.kernel for call in made):
        own = [call for call in made if call.kernel == kernel]
        if batch and (len(batch) + len(own) > _CALLS_AT_ONCE or kernel == "probes"):
            yield batch
            batch = []
        batch += own
        if kernel == "probes":
            yield batch
            batch = []
    if batch:
        yield batch


def _write(workplace: Workplace, batch: Sequence[Call], folder: Path) -> Path:
    """The batch as ``profiled.py`` reads it, with the inputs that the CPU's kernels had."""
    import torch
    from runners.config_memory import region, scalar
    from truth.oracle import Oracle

    torch.set_num_threads(1)
    data = bytearray()
    listed = []
    for call in batch:
        spec, package = call.spec, workplace.root / counted.PACKAGES / call.kernel
        signature = spec.signature
        seeds = Seeds(spec.salt, call.artifact, _GATE)
        generator = seeds.generator(_GATE, call.config.name)
        oracle = Oracle(str(package / "reference.py"), signature)
        inputs = oracle.inputs(call.config, generator)
        places = []
        for argument in signature.inputs:
            content = inputs[argument.name].contiguous().view(-1).view(torch.uint8)
            data += bytes(-len(data) % _ALIGNMENT)
            places.append((len(data), len(content)))
            data += content.numpy().tobytes()
        entry = spec.candidate.entry
        listed.append(
            {
                "library": str(_library(workplace, call.kernel)),
                "symbols": [f"{entry}_{call.config.dtype}", entry],
                "inputs": places,
                "outputs": [region(a, call.config).size for a in signature.outputs],
                "scalars": [scalar(pair, call.config)[1] for pair in signature.scalars],
                "dims": [call.config.dims[name] for name in signature.dims],
            }
        )
    (folder / "data").write_bytes(data)
    runtime = workplace.output("toolchains/hip:cuda.runtime", "libcudart.so.13")
    told = {"runtime": str(runtime), "data": str(folder / "data"), "calls": listed}
    (folder / "calls.json").write_text(json.dumps(told))
    return folder / "calls.json"


def _rows(
    batch: Sequence[Call], launches: Sequence[Profiled], said: str
) -> Iterator[dict[str, Any]]:
    """The rows of a batch. Raises ValueError where launches cannot be told apart by call."""
    ended = [json.loads(line) for line in said.splitlines() if line.startswith('{"returned"')]
    own = assigned(launches, [_launched(call) for call in batch])
    for number, call in enumerate(batch):
        error = ended[number] if number < len(ended) else {"returned": None}
        yield from rows_of(call, own[number], error)


def _launched(call: Call) -> int:
    return sum(launch["count"] for launch in call.found["launches"])


def assigned(launches: Sequence[Profiled], expected: Sequence[int]) -> list[list[Profiled]]:
    """The launches of each call: each has a stream of its own, or as many as on the CPU.

    Raises ValueError where neither holds.
    """
    streams = list(dict.fromkeys(launch.stream for launch in launches))
    if len(streams) == len(expected):
        return [[one for one in launches if one.stream == stream] for stream in streams]
    if sum(expected) != len(launches):
        raise ValueError(
            f"{len(launches)} launches on {len(streams)} streams are not those of "
            f"{len(expected)} calls with {sum(expected)} launches"
        )
    rest = iter(launches)
    return [[next(rest) for _ in range(count)] for count in expected]


def rows_of(
    call: Call, launches: Sequence[Profiled], ended: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """The rows of one call, and how it ended on the device."""
    of_cpu = call.found["launches"]
    names: list[str] = [launch["kernel"] for launch in of_cpu]
    grids = [(tuple(launch["grid"]), tuple(launch["block"])) for launch in of_cpu]
    same = grids == [(launch.grid, launch.block) for launch in launches]
    apart = len(set(names)) == len(launches) == _launched(call)
    parts: list[tuple[str | None, Sequence[Profiled]]] = [(None, launches)]
    if apart:
        parts = [(name, [launch]) for name, launch in zip(names, launches, strict=True)]
    for part, profiled in parts:
        yield {
            "kernel": call.kernel,
            "config": call.config.name,
            "launch": part or "all",
            "device_kernels": [one.kernel for one in profiled],
            "same_grid": same,
            "ended": dict(ended),
            "figures": _figures(_on_cpu(call.found, part), profiled),
            "others": {name: _sum(profiled, (name,)) for name in OTHERS},
        }


def _on_cpu(found: Mapping[str, Any], kernel: str | None) -> Figures:
    """The figures of one kernel, or of all together."""
    figures: Figures = dict.fromkeys(map(" ".join, METRICS), 0.0)
    width = f"warp{counted.WARP}"

    def own(what: str) -> list[Mapping[str, Any]]:
        return [one for one in found[what] if kernel is None or one["kernel"] == kernel]

    for access in own("accesses"):
        totals = dict(access[width])
        totals["conflicts"] = totals.get("passes", 0) - totals.get("passes_least", 0)
        for what in ("requests", "sectors", "passes", "conflicts"):
            name = f"{access['space']} {access['operation']} {what}"
            if name in figures:
                figures[name] += totals.get(what, 0)
    divergent = sum(branch[width]["divergent"] for branch in own("branches"))
    sectors = sum(launch["sectors_read"] for launch in own("launches"))
    return {
        **figures,
        "branches of warps divergent": divergent,
        "memory at least read bytes": 32 * sectors,
    }


def _figures(cpu: Figures, launches: Sequence[Profiled]) -> dict[str, Any]:
    device: dict[str, float | None] = {
        " ".join(key): _sum(launches, names) for key, names in METRICS.items()
    }
    for operation in _OPERATIONS:
        name = f"global {operation}"
        sides: tuple[dict[str, Any], ...] = (cpu, device)
        for side in sides:
            requests, sectors = (side[f"{name} {what}"] for what in ("requests", "sectors"))
            side[f"{name} sectors/request"] = sectors / requests if requests else sectors
    return {
        name: {
            "cpu": cpu[name],
            "device": device[name],
            "difference": _difference(name, cpu, device),
        }
        for name in cpu
        if cpu[name] or device[name]
    }


def _difference(name: str, cpu: Figures, device: Mapping[str, float | None]) -> float | None:
    there = device[name]
    whole = device[name.replace("conflicts", "passes")]
    return round((cpu[name] - there) / whole, 4) if there is not None and whole else None


def _sum(launches: Sequence[Profiled], names: Sequence[str]) -> float | None:
    """Of all launches; None where the profiler has none of these counters."""
    values = [
        launch.counters[name] for launch in launches for name in names if name in launch.counters
    ]
    return sum(values) if values else None
