"""``kabuild analyze`` by the real program: counts, sentences with evidence, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kabuild.report.analysis import render_analysis
from tests.testkit.cli import CliWorkspace, Ran

from .conftest import KERNEL, declare

LINE = "if (i < n) y[i] = 2.0f * x[i];"
STRIDED = KERNEL.replace(LINE, "if (i < n) y[i] = 2.0f * x[i / 32 + i % 32 * (n / 32)];")
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
    assert "nothing stands out for warps of 32" in ran.out
    assert "moves at least 4,192 bytes from memory and 4,192 to it; requests move" in ran.out
    assert "computes 1,048 operations by the task's declaration: 0.12 for each" in ran.out
    assert "double.hip:5: branch of twice, warps part 1 of 40 times" in ran.out
    assert "1. double.hip:5: loads of 'x' move" in ran.out


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
    }
    assert not any("analyze" in str(action["label"]) for action in usual["actions"])


def test_a_report_shows_what_was_counted(workspace: CliWorkspace) -> None:
    ran = workspace.run("report", "//strided", "--gates=compile,analyze", "-o", "page.html")

    assert ran.code == 0, ran.err
    page = (workspace.root / "page.html").read_text()
    assert "<summary>accesses to memory: 1 finding</summary>" in page
    assert "<code>double.hip:5</code></td><td>loads of &#39;x&#39; move" in page


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    workspace = CliWorkspace.make(tmp_path)
    workspace.adopt("tasks/triton2triton/swiglu")

    triton = workspace.run("analyze", "//...")
    unknown = workspace.run("analyze", "//...", "--arch=sm_91")

    assert (triton.code, triton.out) == (4, "")
    assert "no task can be analyzed in //..." in triton.err
    assert (unknown.code, unknown.out) == (2, "")
    assert "unknown architecture 'sm_91'" in unknown.err


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
    ) in render_analysis("//right", analysis, 32, known)
    assert "occupancy on sm_90 is unknown: nvcc is not there" in render_analysis(
        "//right", analysis, 32, unknown
    )


def test_an_analysis_of_another_form_is_an_error(analyzed: Ran) -> None:
    analysis = json.loads(json.dumps(analyzed.json["//right"]))
    del analysis["calls"][0]["accesses"][0]["warp32"]["requests"]

    with pytest.raises(LookupError):
        render_analysis("//right", analysis, 32)
