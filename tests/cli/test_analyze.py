"""``kabuild analyze`` by the real program: counts, sentences with evidence, and what it refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from kabuild.report.analysis import render_analysis
from tests.testkit.cli import CliWorkspace, Ran

from .conftest import KERNEL, declare

LINE = "if (i < n) y[i] = 2.0f * x[i];"
STRIDED = KERNEL.replace(LINE, "if (i < n) y[i] = 2.0f * x[i / 32 + i % 32 * (n / 32)];")
UNEVEN = KERNEL.replace(
    LINE,
    f"{LINE}\n  float sum = 0.0f;\n  for (int k = 0; i == 0 && k < n; ++k) sum += x[k];\n"
    "  if (i == 0) y[0] += 0.0f * sum;",
)
GIVES_UP = KERNEL.replace("return hipGetLastError();", "return hipErrorNotSupported;")
EDITS = {
    "right": KERNEL,
    "strided": STRIDED,
    "gives_up": GIVES_UP,
    "refused": KERNEL.replace(
        LINE, f"{LINE}\n#ifdef HIPCPU_SANITIZE\n#error not for you\n#endif\n"
    ),
}


@pytest.fixture(scope="module")
def workspace(kept_workspace: CliWorkspace) -> CliWorkspace:
    """Tasks of 1048 elements: 32 whole warps, and one of 24 lanes."""
    for name, source in EDITS.items():
        declare(kept_workspace, name, solution=source)
    return kept_workspace


@pytest.fixture(scope="module")
def analyzed(workspace: CliWorkspace) -> Ran:
    """All of them, in one build."""
    return workspace.run("analyze", "//...", "--json")


def loads(analysis: dict[str, Any]) -> dict[str, Any]:
    (call,) = analysis["calls"]
    (found,) = [a for a in call["accesses"] if a["operation"] == "load"]
    assert isinstance(found, dict)
    return found


def test_it_counts_by_line(analyzed: Ran) -> None:
    """By hand: 131 sectors of 32 bytes hold 1048 floats."""
    right = analyzed.json["//right"]
    (call,) = right["calls"]
    found = loads(right)

    assert (call["config"], call["reduced"], call["whole"]) == ("f32 n=1048", False, True)
    assert call["launches"][0]["grid"] == [5, 1, 1]
    assert (found["file"], found["line"], found["memory"]) == ("double.hip", 5, "x")
    assert found["warp32"] == {
        "requests": 33,
        "partial": 1,
        "lanes": 1048,
        "bytes": 4192,
        "sectors": 131,
        "sectors_least": 131,
        "sectors_per_request": round(131 / 33, 4),
        "efficiency": 1.0,
    }
    assert found["warp64"]["requests"] == 17
    (launch,) = call["launches"]
    assert (launch["sectors_read"], launch["sectors_written"], call["flops"]) == (131, 131, 1048)
    assert (launch["sectors_read_by_blocks"], launch["sectors_most_of_block"]) == (131, 64)
    assert launch["loads_most_of_thread"] == 1
    (doubled,) = [one for one in call["arithmetic"] if one["kind"] != "integer"]
    assert (doubled["kind"], doubled["line"], doubled["operations"]) == ("f32", 5, 1048)
    (branch,) = call["branches"]
    assert branch["line"] == 5
    ways = {"requests": 40, "partial": 0, "lanes": 1280, "divergent": 1}
    assert (branch["warp32"], branch["warp64"]["requests"]) == (ways, 20)
    assert right["findings"] == {"warp32": [], "warp64": []}
    assert right["occupancy"] is None


def test_what_stands_out_is_told_with_its_evidence(analyzed: Ran) -> None:
    strided = analyzed.json["//strided"]
    (finding,) = strided["findings"]["warp32"]

    assert (finding["kind"], finding["line"], finding["memory"]) == ("UNCOALESCED", 5, "x")
    assert loads(strided)["warp32"]["efficiency"] < 0.2
    assert f"of {loads(strided)['warp32']['sectors']:,} sectors" in finding["text"]


def test_a_failed_call_fails_and_an_unfit_source_is_named(analyzed: Ran) -> None:
    """What was counted until then is there, and said to be incomplete."""
    (call,) = analyzed.json["//gives_up"]["calls"]

    assert analyzed.code == 3
    assert (call["whole"], call["fault"]) == (False, "LAUNCH_ERROR")
    assert loads(analyzed.json["//gives_up"])["warp32"]["requests"] == 33
    assert "incomplete: the call failed: LAUNCH_ERROR" in render_analysis(
        "//gives_up", analyzed.json["//gives_up"], 32
    )
    assert analyzed.json["//refused"]["calls"] == []
    assert "analyze: FAIL (COMPILE_ERROR)" in analyzed.err
    assert "double.hip:7:2: error: not for you" in analyzed.err


def test_people_see_a_table_and_sentences(workspace: CliWorkspace) -> None:
    ran = workspace.run("analyze", "//strided", "//right")

    assert ran.code == 0
    assert "//right: counted in 1 call on the CPU, not timed" in ran.out
    assert "double.hip:5  twice   load    x           4        33   31.8  4.0 sectors" in ran.out
    assert "blocks load these bytes 1.0 times, if each keeps what it has accessed" in ran.out
    assert re.search(r"counted: [\d,]+ integer, 1,048 f32$", ran.out, re.MULTILINE)
    assert "no wasteful accesses for warps of 32" in ran.out
    assert "moves at least 4,192 bytes from memory and 4,192 to it; requests move" in ran.out
    assert "computes 1,048 operations by the task's declaration: 0.12 for each" in ran.out
    assert "double.hip:5: branch of twice, warps part 1 of 40 times" in ran.out
    assert "1. double.hip:5: loads of 'x' move" in ran.out


def test_a_thread_that_loads_far_more_than_most_is_told(workspace: CliWorkspace) -> None:
    (workspace.root / "uneven.hip").write_text(UNEVEN)

    ran = workspace.run("analyze", "//right", "--solution=uneven.hip")

    assert "twice: the busiest thread makes 1,050 loads, 640.9 times the mean" in ran.out


def test_a_solution_is_analyzed(workspace: CliWorkspace, tmp_path: Path) -> None:
    mine = tmp_path / "mine.hip"
    mine.write_text(STRIDED)

    ran = workspace.run("analyze", "//right", f"--solution={mine}", "--json")

    assert [f["kind"] for f in ran.json["//right"]["findings"]["warp32"]] == ["UNCOALESCED"]


def test_it_is_asked_for_and_changes_no_score(workspace: CliWorkspace) -> None:
    usual = workspace.run("aquery", "//right", "--json").json
    asked = workspace.run("test", "//right", "--gates=analyze", "--json")

    assert asked.gate("analyze")["verdict"] == "PASS"
    assert asked.gate("analyze")["cached"]
    assert asked.gate("analyze")["speedup"] is None
    verdict = json.loads((workspace.root / "out/right/right.analyze/verdict.json").read_text())
    assert verdict["findings"] == {"warp32": [], "warp64": []}
    (case,) = verdict["cases"]
    assert case == {
        "config": "f32 n=1048",
        "launches": 1,
        "fault": "",
        "bytes_read": 4192,
        "bytes_written": 4192,
        "bytes_moved": 8384,
        "flops": 1048,
        "modelled_ns": case["modelled_ns"],
        "fitted_ns": case["fitted_ns"],
        "work_ns": case["work_ns"],
    }
    assert case["fitted_ns"]["sm_80"] is None, "only one GPU has a fit"
    assert 2000 < case["fitted_ns"]["sm_90"] < 3000, "it is a launch and little else"
    assert 0 < case["work_ns"]["sm_90"] < 500
    assert case["modelled_ns"].keys() == {"sm_80", "sm_90"}
    assert not any("analyze" in str(action["label"]) for action in usual["actions"])


def test_a_report_shows_what_was_counted(workspace: CliWorkspace) -> None:
    ran = workspace.run("report", "//strided", "--gates=compile,analyze", "-o", "page.html")

    assert ran.code == 0, ran.err
    page = (workspace.root / "page.html").read_text()
    assert "<summary>accesses to memory: 1 finding</summary>" in page
    assert "<code>double.hip:5</code></td><td>loads of &#39;x&#39; move" in page
    assert '<th class="number">modelled on sm_90</th>' in page
    assert re.search(r'data-value="1\d\d\d\.\d+">1\.\d+ µs</td>', page)
    assert "they are no measurements, and no score is made of them" in page


SCALE = '''"""Twice x, read with a step."""

# The lines of this file are those that a reader sees.
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x, y, n, BLOCK: tl.constexpr):
    """One program for each block."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    at = i // 32 + i % 32 * (n // 32)  # neighbours are far apart
    value = tl.load(
        x + at,
        mask=i < n,
    )
    tl.store(y + i, 2 * value, mask=i < n)


def scale(x, y, *, n):
    scale_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
'''
SCALING = """
[[triton2triton]]
name      = "scale"
kernel    = "scale.py"
reference = "reference.py"
entry     = "scale"
brief     = "Twice a vector, whose elements are in an order of 32 columns: y = 2 x[order]."
inputs    = { x = "T[n]" }
outputs   = { y = "T[n]" }
dims      = { n = "1024..1024" }
dtypes    = ["f32"]
configs   = [{ n = 1024 }]
"""
ORACLE = """
import torch

def inputs(config, generator):
    return {"x": torch.randn(config["n"], generator=generator)}

def reference(x, n, **_):
    return {"y": 2 * x.reshape(32, n // 32).T.reshape(n)}
"""
CHECKING = """
import subprocess

told = subprocess.run(["kabuild-check", "--analyze"], capture_output=True, text=True)
print(told.stdout, told.stderr)
"""


@pytest.fixture
def scaling(tmp_path: Path) -> CliWorkspace:
    """A workspace with a Triton task."""
    workspace = CliWorkspace.make(tmp_path)
    workspace.write("scale/BUILD.toml", SCALING)
    workspace.write("scale/scale.py", SCALE)
    workspace.write("scale/reference.py", ORACLE)
    return workspace


def test_triton_kernels_are_counted_by_their_author_s_lines(scaling: CliWorkspace) -> None:
    """Also those of a solution, whose lines are others."""
    scaling.write("mine.py", f"# Mine.\n{SCALE}")
    for flag, line in (("--agent=none", 13), ("--solution=mine.py", 14)):
        ran = scaling.run("analyze", "//scale", flag, "--json")
        assert ran.code == 0, ran.err
        analysis = ran.json["//scale"]
        found = loads(analysis)
        assert (found["file"], found["line"], found["column"]) == ("scale.py", line, 0)
        assert (found["memory"], found["kernel"]) == ("x", "scale_kernel")
        assert (found["warp32"]["requests"], found["warp32"]["sectors"]) == (32, 32 * 32)
        (launch,) = analysis["calls"][0]["launches"]
        assert (launch["grid"], launch["block"]) == ([4, 1, 1], [])
        assert [f["kind"] for f in analysis["findings"]["warp32"]] == ["UNCOALESCED"]

    shown = render_analysis("//scale", analysis, 32, arch="sm_90")
    assert "no modelled time on sm_90: only HIP kernels have one" in shown
    assert "scale_kernel: 1 launch, grid 4x1x1\n" in shown
    assert "1. scale.py:14: loads of 'x' move 32.0 sectors per request where 4.0" in shown


def test_an_agent_counts_its_triton_kernel(scaling: CliWorkspace) -> None:
    scaling.write("agents/checker.py", CHECKING)
    scaling.write(
        "agents/BUILD.toml",
        '[[agent]]\nname = "checker"\nfiles = ["checker.py"]\nseconds = 100\n'
        'command = ["{python}", "{files}/checker.py"]\n',
    )

    ran = scaling.run("build", "//scale:scale.agent", "--agent=//agents:checker")

    assert ran.code == 0, ran.err
    transcript = (scaling.root / "out/scale/scale.agent/transcript.jsonl").read_text()
    assert "scale.py:13: loads of 'x' move 32.0 sectors per request" in transcript


def test_what_cannot_be_is_refused(scaling: CliWorkspace) -> None:
    call = SCALING.replace("triton2triton", "call").replace("entry     =", "call      =")
    scaling.write(
        "other/BUILD.toml", call.replace('call      = "scale"', 'call      = "y = scale(x)"')
    )
    scaling.write("other/scale.py", SCALE)
    scaling.write("other/reference.py", ORACLE)

    neither = scaling.run("analyze", "//other/...")
    unknown = scaling.run("analyze", "//...", "--arch=sm_91")
    both = scaling.run("analyze", "//...", "--arch=sm_90", "--platform=cuda:sm_90")
    elsewhere = scaling.run("analyze", "//scale", "--platform=cuda:sm_90")

    assert (neither.code, neither.out) == (4, "")
    assert (
        "no task can be analyzed on cpu in //other/...\n"
        "  tasks of kind 'call' cannot be analyzed, whatever their solution is written in\n"
    ) in neither.err
    assert (unknown.code, unknown.out) == (2, "")
    assert "unknown architecture 'sm_91'" in unknown.err
    assert (both.code, both.out) == (2, "")
    assert "--platform asks for a GPU's own" in both.err
    assert (elsewhere.code, elsewhere.out) == (4, "")
    assert "no task can be analyzed on cuda in //scale" in elsewhere.err
    assert "kabuild toolchain pin //toolchains/cuda:profiler --from DIRECTORY" in elsewhere.err


KERNEL_OF_A_GPU = {
    "name": "twice",
    "occupancy": 16,
    "occupancy_most": 64,
    "occupancy_limit": "registers",
    "wave": 32,
    "threads": 256,
    "registers": 124,
    "shared_bytes": 640,
    "spills": 216,
}


def test_occupancy_is_the_compiler_s(analyzed: Ran) -> None:
    """Its tables are shown beside the counts, or why there are none."""
    analysis = analyzed.json["//right"]
    known = {"arch": "sm_90", "kernels": [KERNEL_OF_A_GPU], "unknown": ""}
    unknown = {"arch": "sm_90", "kernels": [], "unknown": "nvcc is not there"}

    assert (
        "twice: 16 of 64 waves of 32, limited by registers in blocks of 256; "
        "124 registers, 640 bytes shared, 216 spilled"
    ) in render_analysis("//right", analysis, 32, occupancy=known)
    assert "occupancy on sm_90 is unknown: nvcc is not there" in render_analysis(
        "//right", analysis, 32, occupancy=unknown
    )


def test_a_modelled_time_is_said_to_be_no_measurement(analyzed: Ran) -> None:
    """131 sectors each way at 3350 GB/s, and one launch."""
    analysis = analyzed.json["//right"]
    (call,) = analysis["calls"]
    modelled = call["modelled"]["sm_90"]
    shown = render_analysis("//right", analysis, 32, arch="sm_90")

    assert modelled["parts"]["launch"] == 1000
    assert modelled["parts"]["memory"] == round(2 * 131 * 32 / 3350, 1)
    assert modelled["ns"] == pytest.approx(sum(modelled["parts"].values()), abs=0.5)
    assert modelled["l2"]["hits"] == 0
    assert (modelled["l2"]["bytes_read"], modelled["l2"]["bytes_written"]) == (4192, 4192)
    assert "  modelled on sm_90 (H100 SXM): 1." in shown
    assert "made of counts and published peaks; it is no measurement and never a score" in shown
    assert "    launches (assumed) 1 µs, " in shown
    assert "    only 5 of 132 multiprocessors have a block: kernels with fewer, larger" in shown
    full = json.loads(json.dumps(analysis))
    full["calls"][0]["modelled"]["sm_90"]["busy"] = 132
    assert "have a block" not in render_analysis("//right", full, 32, arch="sm_90")
    assert "L2 of 50 MiB by estimate: serves 0% of 262 sectors; memory delivers 4,192" in shown
    assert "modelled" not in render_analysis("//right", analysis, 32)
    unknown = render_analysis("//right", analysis, 32, arch="sm_75")
    assert "no modelled time on sm_75: its platform's peaks.toml does not have it" in unknown


def test_incomplete_counts_have_no_modelled_time(analyzed: Ran) -> None:
    analysis = analyzed.json["//gives_up"]

    assert analysis["calls"][0]["modelled"] == {}
    shown = render_analysis("//gives_up", analysis, 32, arch="sm_90")
    assert "no modelled time on sm_90: the counts are incomplete" in shown


def test_an_analysis_of_another_form_is_an_error(analyzed: Ran) -> None:
    analysis = json.loads(json.dumps(analyzed.json["//right"]))
    del analysis["calls"][0]["accesses"][0]["warp32"]["requests"]

    with pytest.raises(LookupError):
        render_analysis("//right", analysis, 32)
