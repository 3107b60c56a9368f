"""What the figures and tables of a page say agrees with one another, and with what was judged."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kabuild.model.task_result import Evidence
from kabuild.report.page.entries import in_order
from kabuild.report.page.panels import fast_curves
from kabuild.report.page.render import render_page
from kabuild.report.page.resources import resources
from kabuild.report.page.svg import series
from tests.kabuild.report.test_page import case, evaluation, result
from tests.testkit.cli import CliWorkspace
from tests.testkit.evaluations import in_trial, published_evaluation, said, saying
from tests.testkit.examples import examples
from tests.testkit.kept import kept_alone

if TYPE_CHECKING:
    from pathlib import Path

FIGURES = ("speedup", "low", "high", "baseline_ns", "candidate_ns", "bytes", "flops")
FAILED = {"verdict": "FAIL", "reason": "COMPILE_ERROR", "summary": "no", "detail": ""}


def never_compiled() -> Any:
    """An evaluation of which nothing was ever timed."""
    return evaluation("A", saying(result("softmax", None), {"compile": FAILED}))


def test_a_colour_is_one_evaluation_everywhere() -> None:
    """Also where an agent before it never compiled, and so has no curve."""
    several = [never_compiled(), *(evaluation(name, result("softmax", 2.0)) for name in "BC")]
    page = render_page(several, title="t")

    curves = re.findall(r'<polyline class="series (s\d)[^>]*><title>(\w)</title>', page)
    keys = set(re.findall(r'<span class="key series (s\d)"></span>(?:<strong>)?(\w)<', page))
    assert curves == [("s1", "B"), ("s2", "C")]
    assert keys == {("s0", "A"), ("s1", "B"), ("s2", "C")}
    found = fast_curves(several)
    assert found
    assert ([key.name for key in found.keys], found.without) == (["B", "C"], ("A",))
    assert "Not timed: A." in page


def test_without_times_there_is_no_plot_of_them() -> None:
    assert fast_curves([never_compiled()]) is None
    assert "<polyline" not in render_page([never_compiled()], title="t")


def test_the_seventh_evaluation_does_not_look_like_the_first() -> None:
    assert series(6) == f"{series(0)} again"


@pytest.mark.parametrize(
    ("low", "high", "kind"), [(1.01, 1.4, "win"), (0.9, 1.2, "tie"), (0.5, 0.99, "loss")]
)
def test_only_what_is_sure_has_a_colour(low: float, high: float, kind: str) -> None:
    found = result("gemm", 1.02)
    timed = [case("f32 n=1", 1.02) | {"low": low, "high": high}]
    measured = saying(found, {**said(found), "perf": {"verdict": "PASS", "cases": timed}})
    page = render_page([evaluation("ours", measured)], title="t")

    assert re.findall(r'<span class="word (\w+)"[^>]*>1.02x', page) == [kind, kind]


def test_the_tuner_is_not_praised_for_what_may_be_chance() -> None:
    """Whatever times were published: who may be no faster is not shown as faster."""
    page = render_page([published_evaluation("results/cpu/tuner.kab")], title="t")
    shown = re.findall(r'<span class="word (\w+)" title="([\d.]+)x to ([\d.]+)x">', page)

    assert {kind for kind, *_ in shown} >= {"tie", "win"}
    for kind, low, high in shown:
        if float(low) < 1.0 < float(high):
            assert kind == "tie", (low, high)


def test_tasks_are_counted_and_not_their_trials() -> None:
    one = result("softmax", 2.0)
    page = render_page([evaluation("ours", one, in_trial(one, 2))], title="t")

    assert "1 task, 1 evaluation." in page
    assert '<td class="number">1</td><td class="number">2</td>' in page
    assert '<th class="number">trials</th>' in page
    assert '<th class="number">trials</th>' not in render_page([evaluation("o", one)], title="t")


def test_the_platform_is_said_once_and_toolchains_with_their_digests() -> None:
    h200 = published_evaluation("results/h200/expert.kab")
    page = render_page([h200], title="t")

    assert page.count("<dt>platform</dt>") == 1
    assert "<dt>from</dt><dd><code>results/h200/expert.kab</code></dd>" in page
    for toolchain in h200.toolchains:
        assert f"<code>sha256:{toolchain.digest}</code>" in page


@pytest.mark.parametrize(
    ("config", "ordered"),
    [
        ("f32 k=64 m=128 n=253", "f32 m=128 n=253 k=64"),
        ("f16 eps=0.1 k=1 n=2 m=3", "f16 eps=0.1 m=3 n=2 k=1"),
        ("f32", "f32"),
        ("", ""),
    ],
)
def test_dims_are_shown_as_they_were_declared(config: str, ordered: str) -> None:
    assert in_order(config, ("m", "n", "k")) == ordered


def test_unseen_configs_too() -> None:
    page = render_page([published_evaluation("results/cpu/expert.kab")], title="t")
    assert "f32 m=128 n=253 k=64" in page
    assert "f32 k=64 m=128 n=253" not in page


def test_a_kernel_is_shown_beside_its_baseline_or_alone() -> None:
    def shown(candidate: str, baseline: str) -> str:
        one = result("softmax", 2.0, evidence=Evidence(candidate, baseline))
        return render_page([evaluation("ours", one)], title="t")

    page = shown("int y;\n", "")
    assert "<summary>candidate</summary><pre>int y;" in page
    assert "-int x;\n+int y;" in shown("int y;\n", "int x;\n")
    assert "<summary>candidate" not in shown("int y;\n", "int y;\n")


def test_what_kernels_take_of_an_nvidia_processor_is_a_table() -> None:
    compiled = published_evaluation("results/h200/expert.kab").results[0].gates["compile"]
    table = resources(compiled.data)

    assert table
    titles = ("threads", "registers", "shared", "spills", "stack", "code", "occupancy")
    assert (table.arch, table.titles) == ("sm_90", titles)
    name, figures = table.rows[0]
    assert name == "gemm_tiles<__half, __half, 128, false>"
    assert [figure.text for figure in figures] == [
        *("256", "128", "16.5 KiB", "48 B", "16 B", "24.1 KiB", "16 of 64 (registers)"),
    ]
    assert [figure.bad for figure in figures] == [title == "spills" for title in titles]


def test_what_kernels_take_of_an_amd_processor_is_a_table(tmp_path: Path) -> None:
    """Compiled for a device that is not here, once for all tests that do (tests/rules/hip_rocm)."""
    with kept_alone("rocm") as kept:
        workspace = CliWorkspace.make(tmp_path, kept / "store")
        workspace.adopt("tasks/hip2hip/softmax")
        flags = ("report", "//...", "--platform=rocm:gfx942", "--gates=compile")
        ran = workspace.run(*flags, "--format=json")
        in_page = workspace.run(*flags, "-o", "page.html")
    assert ran.code == 0, ran.err
    (judged,) = ran.json["evaluations"][0]["results"]
    table = resources(judged["gates"]["compile"])

    assert table
    assert table.arch == "gfx942"
    assert {"VGPRs", "SGPRs", "AGPRs", "LDS", "spills", "stack", "code"} <= {*table.titles}
    kernel = judged["gates"]["compile"]["kernels"][0]
    shown = dict(zip(table.titles, table.rows[0][1], strict=True))
    assert shown["VGPRs"].text == str(kernel["registers"])
    assert shown["SGPRs"].text == str(kernel["scalar_registers"])
    assert shown["LDS"].text == f"{kernel['shared_bytes']} B"
    limit = f"({kernel['occupancy_limit']})"
    assert shown["occupancy"].text == f"{kernel['occupancy']} of {kernel['occupancy_most']} {limit}"

    assert in_page.code == 0
    page = (workspace.root / "page.html").read_text()
    assert f"resources: {len(table.rows)} kernels for gfx942" in page
    assert '<th class="number">VGPRs</th>' in page


@pytest.mark.parametrize(
    "kernels", [None, [], ["a"], 7, [{"name": 7, "registers": "x", "occupancy": 1}], {"a": 1}]
)
def test_a_table_is_made_of_what_is_there(kernels: Any) -> None:
    table = resources({"kernels": kernels})
    assert table is None or [figure.text for figure in table.rows[0][1]] == ["-", "-"]


FINDING = {
    "file": "softmax.hip",
    "line": 5,
    "text": "loads of 'x' move 32.0 sectors per request",
    "config": "f32 n=64",
    "share": 0.75,
}
TRAFFIC = {
    "config": "f32 n=64",
    "bytes_read": 2048,
    "bytes_written": 2048,
    "bytes_moved": 8192,
    "flops": 1024,
}


def counting(findings: Any, cases: Any) -> str:
    """The page of a kernel of which accesses were counted."""
    told = {"verdict": "PASS", "findings": findings, "cases": cases}
    one = saying(result("softmax", 2.0), {"analyze": told})
    return render_page([evaluation("ours", one)], title="t")


def test_what_a_kernel_asks_memory_for_is_a_table() -> None:
    page = counting({"warp32": [FINDING], "warp64": []}, [TRAFFIC, {**TRAFFIC, "flops": 0}])

    assert "<summary>accesses to memory: 1 finding</summary>" in page
    assert "<code>softmax.hip:5</code></td><td>loads of &#39;x&#39; move 32.0 sectors" in page
    assert '<td class="number">75 %</td>' in page
    assert '<td class="number">2.00x</td><td class="number">0.25</td></tr>' in page
    assert '<td class="number">2.00x</td><td class="number">-</td></tr>' in page


def test_the_findings_of_another_gate_are_no_accesses() -> None:
    assert "accesses to memory" not in counting([FINDING], [TRAFFIC])


REMARK = {
    "kind": "MEMORY_BOUND",
    "kernel": "rows<float>",
    "share": 0.75,
    "text": "memory is busy 88% of the time",
    "config": "f32 n=64",
}


def profiling(findings: Any, cases: Any) -> str:
    """The page of a kernel that was run under a profiler."""
    told = {"verdict": "PASS", "findings": findings, "cases": cases}
    one = saying(result("softmax", 2.0), {"counters": told})
    return render_page([evaluation("ours", one)], title="t")


def test_what_a_profiler_says_of_kernels_is_a_table() -> None:
    page = profiling([REMARK], [{"config": "f32 n=64", "profiled_ns": 2500.0}])

    assert "<summary>the device&#39;s counters: 1 finding</summary>" in page.replace("'", "&#39;")
    assert '<code>rows&lt;float&gt;</code></td><td class="number">75 %</td>' in page
    assert "memory is busy 88% of the time" in page
    assert ">2.5 µs</td>" in page


@pytest.mark.parametrize(
    ("findings", "cases"), [([REMARK], [{"config": "a"}]), ({"warp32": []}, [TRAFFIC]), (1, [None])]
)
def test_other_gates_have_no_counters(findings: Any, cases: Any) -> None:
    assert "device's counters" not in profiling(findings, cases)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
CASES = st.lists(
    st.fixed_dictionaries({}, optional=dict.fromkeys((*FIGURES, "config", "cold"), JSON)) | JSON,
    max_size=3,
)
COUNTED = st.lists(
    st.fixed_dictionaries({}, optional=dict.fromkeys((*TRAFFIC, *FINDING), JSON)) | JSON,
    max_size=3,
)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(cases=COUNTED | JSON, findings=st.fixed_dictionaries({"warp32": COUNTED | JSON}) | JSON)
def test_what_somebody_else_has_counted_is_shown_or_left_out(cases: Any, findings: Any) -> None:
    assert "2.00x" in counting(findings, cases)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(perf=CASES | JSON, unseen=CASES | JSON, quadrants=JSON, kernels=CASES | JSON)
def test_what_a_bundle_of_somebody_else_holds_is_shown_or_left_out(
    perf: Any, unseen: Any, quadrants: Any, kernels: Any
) -> None:
    """Whoever publishes a bundle chooses its verdicts: no page fails on them."""
    found = result("softmax", 2.0)
    told = {"compile": ("kernels", kernels), "perf": ("cases", perf), "unseen": ("cases", unseen)}
    gates = {gate: {"verdict": "PASS", name: value} for gate, (name, value) in told.items()}
    odd = saying(found, gates, figures={"speedup": 2.0, "quadrants": quadrants})

    assert "2.00x" in render_page([evaluation("ours", odd)], title="t")


@pytest.mark.parametrize(
    "nonsense",
    [[], {}, "2.0", True, None, -1.0, 0, 10**400, 1e308, float("nan"), float("inf"), [[1]]],
    ids=lambda value: repr(value)[:12],
)
def test_a_record_of_nonsense_breaks_no_report(nonsense: Any, tmp_path: Path) -> None:
    """Of somebody else's bundle, or of a rule that is wrong; what is right beside it stays."""
    from kabuild.report.arena import write_arena
    from kabuild.report.exports import render_csv, render_json, render_markdown
    from kabuild.report.paired import compare

    kernel = dict.fromkeys(("registers", "occupancy", "occupancy_most", "code_bytes"), nonsense)
    good = result("gemm", 2.0)
    odd = result("softmax", 2.0)
    figures = dict.fromkeys(FIGURES, nonsense)
    cases = [{"config": "n=1", **figures}, {"config": "n=2", **figures, "speedup": 2.0}]
    told = said(odd)
    perf = {**told["perf"], "cases": cases}
    gates = {**told, "compile": {**told["compile"], "kernels": [kernel]}, "perf": perf}
    score = {"speedup": nonsense, "score": nonsense, "scores": {"aka": nonsense}}
    agent = {"seconds": nonsense, "usage": {"tokens": nonsense} if nonsense else nonsense}
    one = evaluation("A", saying(odd, gates, figures=score, agent=agent), good)
    other = evaluation("B", odd, good)

    for text in (render_json([one]), render_csv([one]), render_markdown([one])):
        assert "gemm" in text
    assert "gemm" in render_page([one, other], title="t")
    assert len(write_arena(one, tmp_path / "run")) == 3
    found = compare(one, other)
    assert [pair.ratio for pair in found.pairs if "gemm" in pair.task] == [1.0]
    assert one.results[0].speedup is None
