"""The stage ``analysis`` with a profiler and a device that are stood in for."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import analysis
import counted
import nsight
import pytest
from analysis import assigned, batches, calls, rows_of
from differences import cause, summary
from evaluate import Evaluation
from nsight import Profiled, ProfilerError
from profiled import Device, call
from workplace import Workplace

from tests.testkit.c_compiler import compile_library

LOADS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
PASSES = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"
DRAM = "dram__bytes_read.sum"
LOG = f"""\
==PROF== Connected to process 7 (/usr/bin/python3)
==PROF== Profiling "rows" - 0: 0%....50%....100% - 8 passes
"ID","Process ID","Kernel Name","Stream","Block Size","Grid Size","{LOADS}","x__y.sum"
"","","","","","","request","byte"
"0","7","void rows<float>(const float *)","13","(256, 1, 1)","(16, 2, 1)","1,024","n/a"
"1","7","rest(int)","14","(32, 1, 1)","(1, 1, 1)","3","1.5"
==PROF== Disconnected from process 7
"""
SPEC: dict[str, Any] = {
    "schema": 1,
    "gate": "analyze",
    "platform": "cpu",
    "family": "hip2hip",
    "candidate": {"abi": "hip", "path": "k.so", "entry": "scale"},
    "baseline": {"abi": "hip", "path": "k.so", "entry": "scale"},
    "reference": "reference.py",
    "signature": {
        "inputs": [["x", "T", ["n"]]],
        "outputs": [["y", "T", ["n"]]],
        "scalars": [["by", 2.0]],
        "dims": ["n"],
    },
    "space": {"dims": {"n": [1, 4096]}, "dtypes": ["f32"]},
    "configs": [{"name": "f32 n=4096", "dims": {"n": 4096}, "dtype": "f32", "scalars": {}}],
    "salt": "s",
}
LIBRARY = """
#include <stdlib.h>
#include <string.h>
int hipMalloc(void** to, size_t n) { return (*to = malloc(n)) == 0; }
int hipMemcpy(void* to, const void* from, size_t n, int kind) {
  memcpy(to, from, n);
  return kind != 1;
}
int hipStreamCreate(void** to) { return (*to = malloc(1)) == 0; }
int hipDeviceSynchronize(void) { return 5; }
size_t scale_f32_workspace(long n) { return 4 * n; }
int scale_f32(const float* x, float* y, float by, long n, float* workspace, void* stream) {
  for (long i = 0; i < n; ++i) workspace[i] = by * x[i];
  memcpy(y, workspace, 4 * n);
  return stream == 0 || y[n - 1] != 6.0f;
}
"""


def access(kernel: str, requests: int, sectors: int) -> dict[str, Any]:
    totals = {"requests": requests, "sectors": sectors}
    return {"kernel": kernel, "space": "global", "operation": "load", "warp32": totals}


def shared(kernel: str, passes: int, least: int) -> dict[str, Any]:
    totals = {"requests": 4, "passes": passes, "passes_least": least}
    return {"kernel": kernel, "space": "shared", "operation": "load", "warp32": totals}


def launch(kernel: str, count: int = 1) -> dict[str, Any]:
    shape = {"grid": [2, 1, 1], "block": [32, 1, 1]}
    return {"kernel": kernel, "count": count, "sectors_read": 16, **shape}


def profiled(
    kernel: str, counters: Mapping[str, float] = MappingProxyType({}), stream: str = "7"
) -> Profiled:
    return Profiled(kernel, stream, (2, 1, 1), (32, 1, 1), counters)


def counts(**more: Any) -> dict[str, Any]:
    found = {
        "config": "f32 n=512",
        "of": "f32 n=4096",
        "whole": True,
        "launches": [launch("a"), launch("b<T>")],
        "branches": [{"kernel": "a", "warp32": {"divergent": 3}}],
        "accesses": [access("a", 4, 16), access("b<T>", 2, 64), shared("a", 12, 4)],
        **more,
    }
    return {"kernels": {"scaled": {"artifact": "d", "spec": SPEC, "analysis": {"calls": [found]}}}}


def test_a_log_of_the_profiler_is_read() -> None:
    rows, rest = nsight.read(LOG)

    assert (rows.kernel, rows.stream) == ("void rows<float>(const float *)", "13")
    assert (rows.grid, rows.block) == ((16, 2, 1), (256, 1, 1))
    assert (rows.counters, rest.counters) == ({LOADS: 1024.0}, {LOADS: 3.0, "x__y.sum": 1.5})
    assert nsight.read("==ERROR== ERR_NVGPUCTRPERM\n") == []


def test_a_profiler_that_counts_nothing_is_an_error(tmp_path: Path) -> None:
    """Its own words are in the message; a counter that it does not have is not asked for."""
    program = tmp_path / "ncu"
    program.write_text(
        "#!/bin/sh\n"
        f'[ "$1" = --query-metrics ] && echo "{LOADS[:-4]}  Counter  request" && exit\n'
        'while [ "$1" != --log-file ]; do shift; done\n'
        'echo "==ERROR== ERR_NVGPUCTRPERM" > "$2"\n'
    )
    program.chmod(0o755)

    assert nsight.known(str(program), [LOADS, PASSES], tmp_path) == [LOADS]
    with pytest.raises(ProfilerError, match="ERR_NVGPUCTRPERM"):
        nsight.profile(str(program), [LOADS], ["true"], tmp_path / "log", 10)


def test_both_sides_are_compared_launch_by_launch() -> None:
    (one,) = calls(counts())
    launches = [
        profiled("a(int)", {LOADS: 4, SECTORS: 20, PASSES: 10, CONFLICTS: 7, DRAM: 640}),
        profiled("void b<float>(int)", {LOADS: 2, SECTORS: 64, PASSES: 0, CONFLICTS: 0}),
    ]

    first, second = rows_of(one, launches, {"returned": 0})

    assert (one.config.dims, first["launch"], first["same_grid"]) == ({"n": 512}, "a", True)
    figures = first["figures"]
    assert figures["global load requests"] == {"cpu": 4, "device": 4, "difference": 0}
    assert figures["global load sectors"]["difference"] == -0.2
    assert figures["global load sectors/request"] == {"cpu": 4, "device": 5, "difference": -0.2}
    assert figures["shared load passes"]["difference"] == 0.2
    assert figures["shared load conflicts"] == {"cpu": 8, "device": 7, "difference": 0.1}
    assert figures["branches of warps divergent"]["cpu"] == 3
    assert figures["memory at least read bytes"] == {"cpu": 512, "device": 640, "difference": -0.2}
    assert "shared load passes" not in second["figures"]
    assert "branches of warps divergent" not in second["figures"]
    told = summary([first, second])
    close = {"rows": 2, "causes": {"close": 2}, "unexplained": []}
    assert told["global load requests"] == close
    assert told["global load sectors"]["unexplained"] == [["scaled", "f32 n=512", "a", -0.2]]


def test_launches_that_cannot_be_paired_are_compared_together() -> None:
    (one,) = calls(counts(launches=[launch("a"), launch("b<T>", 3)]))
    launches = [profiled("a(int)", {LOADS: 2, SECTORS: 32})] * 3

    (row,) = rows_of(one, launches, {})

    assert (row["launch"], row["same_grid"]) == ("all", False)
    assert row["figures"]["global load requests"]["difference"] == 0
    assert row["figures"]["global load sectors"] == {
        "cpu": 80,
        "device": 96,
        "difference": round(-16 / 96, 4),
    }


def test_what_one_side_alone_has_is_apart() -> None:
    (one,) = calls(counts())
    rows = list(rows_of(one, [profiled("a"), profiled("b", {LOADS: 0, SECTORS: 0})], {}))

    assert rows[0]["figures"]["global load requests"]["device"] is None
    assert summary(rows)["global load requests"]["causes"] == {"merged": 1}


@pytest.mark.parametrize(
    ("name", "cpu", "device", "requests", "why"),
    [
        ("global load sectors", 100, 104, (10, 20), "close"),
        ("memory at least read bytes", 1000, 1200, None, "close"),
        ("memory at least read bytes", 1000, 30_000, None, "little"),
        ("memory at least read bytes", 1000, 90_000, None, "unexplained"),
        ("memory at least read bytes", 90_000, 1000, None, "unexplained"),
        ("branches of warps divergent", 9, 3, None, "predicated"),
        ("branches of warps divergent", 3, 9, None, "unexplained"),
        ("global load sectors", 40, 10, (10, 5), "merged"),
        ("global store sectors", 10, 40, (10, 40), "split"),
        ("shared load requests", 16, 68, (16, 68), "idle"),
        ("global load sectors", 40, 10, (10, 10), "unexplained"),
    ],
)
def test_differences_have_causes(
    name: str, cpu: int, device: int, requests: tuple[int, int] | None, why: str
) -> None:
    def figure(one: int, other: int) -> dict[str, Any]:
        return {"cpu": one, "device": other, "difference": (one - other) / other}

    figures = {name: figure(cpu, device)}
    if requests:
        figures[" ".join([*name.split()[:2], "requests"])] = figure(*requests)

    assert cause({"figures": figures, "same_grid": True}, name) == why
    if why != "close":
        assert cause({"figures": figures, "same_grid": False}, name) == "grid"


def test_calls_that_were_not_counted_whole_are_left_out() -> None:
    assert calls(counts(whole=False)) == []


def test_launches_are_given_to_their_calls() -> None:
    """By their streams; where they share one, by how many there were on the CPU."""
    apart = [profiled("a", stream="13"), profiled("b", stream="14"), profiled("c", stream="14")]
    together = [profiled("a"), profiled("b"), profiled("c")]

    assert [[one.kernel for one in own] for own in assigned(apart, [2, 2])] == [["a"], ["b", "c"]]
    assert [[one.kernel for one in own] for own in assigned(together, [2, 1])] == [
        ["a", "b"],
        ["c"],
    ]
    with pytest.raises(ValueError, match="3 launches on 1 streams are not those of 2 calls with 4"):
        assigned(together, [2, 2])


def test_batches_hold_whole_kernels_and_the_probes_alone() -> None:
    (one,) = calls(counts())
    made = [replace(one, kernel=name) for name in ("a", "a", "probes", "z") for _ in range(11)]

    found = [[call.kernel for call in batch] for batch in batches(made)]

    assert found == [["a"] * 22, ["probes"] * 11, ["z"] * 11]


def test_a_call_gets_its_arguments(tmp_path: Path) -> None:
    """As the runner passes them: tensors, scalars, dims, workspace, stream."""
    (tmp_path / "scale.c").write_text(LIBRARY)
    library = compile_library(tmp_path / "scale.so", [str(tmp_path / "scale.c")])
    data = b"????" + b"".join(value.to_bytes(4, "little") for value in (0, 0x40400000))
    wanted = {
        "library": str(library),
        "symbols": ["scale_f16", "scale_f32"],
        "inputs": [(4, 8)],
        "outputs": [8],
        "scalars": [2.0],
        "dims": [2],
    }

    assert call(Device(str(library), data), wanted) == {"returned": 0, "device": 5}


def test_inputs_are_those_of_the_cpu(tmp_path: Path) -> None:
    """Drawn by the reference with the seeds of the library that was counted."""
    package = tmp_path / "kabuild" / counted.PACKAGES / "scaled"
    package.mkdir(parents=True)
    (package / "reference.py").write_text(
        "import torch\n"
        "def inputs(config, generator):\n"
        "    return {'x': torch.randn(config['n'], generator=generator)}\n"
        "def reference(x, **_):\n"
        "    return {'y': x}\n"
    )
    workplace = Workplace(tmp_path / "kabuild", tmp_path / "store")
    written = []
    for artifact in ("d", "d", "e"):
        (one,) = calls(counts())
        told = json.loads(
            analysis._write(workplace, [replace(one, artifact=artifact)], tmp_path).read_text()
        )
        written.append(Path(told["data"]).read_bytes())

    assert written[0] == written[1] != written[2]
    (listed,) = told["calls"]
    assert (listed["inputs"], listed["outputs"]) == ([[0, 2048]], [2048])
    assert (listed["symbols"], listed["scalars"]) == (["scale_f32", "scale"], [2.0])
    assert listed["library"].endswith("counted/scaled/scaled.compile/kernel.so")


def test_a_kernel_that_has_changed_since_is_not_compared(tmp_path: Path) -> None:
    workplace = Workplace(tmp_path, tmp_path / "store")
    kernel = tmp_path / counted.PACKAGES / "scaled/solutions/expert/scaled.hip"
    kernel.parent.mkdir(parents=True)
    kernel.write_text("// one\n")
    found = counts()
    found["kernels"]["scaled"]["source"] = counted.source_digest(workplace, "scaled")

    assert analysis._not_built(workplace, found) == {"scaled": "it does not compile"}
    kernel.write_text("// another\n")
    assert "has changed" in analysis._not_built(workplace, found)["scaled"]


def test_tasks_are_declared_for_all_kernels(tmp_path: Path) -> None:
    """With the configs of GPUs: those of the CPU are small enough to hide what waves do."""
    workplace = Workplace(tmp_path, tmp_path / "store")

    counted.declare(workplace)

    names = [kernel.name for kernel in counted.kernels()]
    packages = sorted(path.name for path in (tmp_path / counted.PACKAGES).iterdir())
    assert packages == sorted([*names, "probes"])
    assert {"gemm_given", "topk_expert", "softmax_takes_tickets"} <= set(names)
    assert "gelu_given" not in names
    build = (tmp_path / counted.PACKAGES / "gemm_given/BUILD.toml").read_text()
    assert 'name      = "gemm_given"' in build
    assert "platform_configs" not in build


@pytest.mark.parametrize(
    ("stage", "what"),
    [
        ("analysis", "--analysis_counts, a directory"),
        ("modelled", "--variant_counts, a directory"),
        ("ordered", "--variant_counts, a directory"),
        ("replay", "--bundle, a file"),
        ("originals", "--imports, a workspace"),
    ],
)
def test_the_stage_says_what_it_needs(tmp_path: Path, stage: str, what: str) -> None:
    options = argparse.Namespace(
        cheat=[],
        task=[],
        bundle=[],
        model=[],
        apiece=1,
        tuner_seconds=1,
        seconds=1.0,
        analysis_counts=None,
        variant_counts=None,
        imports=None,
        gates="",
    )
    run = getattr(Evaluation(tmp_path, tmp_path, options), stage)

    with pytest.raises(ValueError, match=f"give {what}"):
        run(Workplace(tmp_path, tmp_path / "store"))
