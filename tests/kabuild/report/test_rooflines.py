"""How near kernels come to the best rates of their machine, and what is said of that."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from kabuild.report.page.panels import panel, task_plots
from kabuild.report.page.render import render_page
from kabuild.report.page.roofs import machines
from kabuild.report.page.svg import Log, quantity
from tests.kabuild.report.test_page import case, evaluation, result
from tests.testkit.evaluations import published_evaluation, said, saying

ON_CPU = replace(published_evaluation("results/cpu/expert.kab"), name="expert on cpu")
TUNER = replace(published_evaluation("results/cpu/tuner.kab"), name="tuner on cpu")
ON_H200 = replace(published_evaluation("results/h200/expert.kab"), name="expert on H200")
ALL = (ON_CPU, TUNER, ON_H200)


def timed(task: str, **more: Any) -> Any:
    """An evaluation of one task on one config that takes 1 ms, and its baseline 2 ms."""
    found = result(task, 2.0)
    perf = {"verdict": "PASS", "cases": [case("f32 n=1", 2.0, **more)]}
    return evaluation("ours", saying(found, {**said(found), "perf": perf}))


def test_each_machine_has_its_own() -> None:
    cpu, h200 = machines(ALL)

    assert (cpu.name, sorted(cpu.numbers)) == ("cpu: AMD EPYC", [0, 1])
    assert (h200.name, sorted(h200.numbers)) == ("cuda: NVIDIA H200", [2])
    assert cpu.memory.rate < 100e9 < h200.memory.rate
    page = render_page(ALL, title="t")
    assert page.count('aria-label="roofline of cpu: AMD EPYC"') == 1
    assert page.count('aria-label="roofline of cuda: NVIDIA H200"') == 1


def test_roofs_are_what_was_seen_and_say_whose_it_was() -> None:
    (_, h200) = machines(ALL)
    rates = [item.moved / item.seconds for item in h200.timed if item.cold]

    assert max(rates) < h200.memory.rate < 1.01 * max(rates)
    assert h200.memory.text == "4.25 TB/s"
    assert h200.memory.whose.startswith("the baseline of tasks/torch2hip/attention_decode f16")
    assert h200.arithmetic
    assert h200.arithmetic.text == "706 TFLOP/s"
    assert h200.arithmetic.whose.endswith(" of expert on H200")
    said = "4.25 TB/s by the baseline of tasks/torch2hip/attention_decode"
    assert said in render_page(ALL, title="t")


def test_nothing_is_nearer_than_the_best_of_its_kind() -> None:
    for machine in machines(ALL):
        assert max(map(machine.share, machine.timed)) == pytest.approx(1.0)
    (_, h200) = (panel(ALL, machine) for machine in machines(ALL))
    shares = {task: of[0].text for task, of in h200.rows if of[0]}
    assert shares["//tasks/hip2hip/gemm"] == "3 to 84 %"
    assert shares["//tasks/torch2hip/attention_decode"] == "61 to 100 %"


def test_a_baseline_may_be_the_best() -> None:
    slow = timed("gemm", bytes=4096, flops=8192)
    perf = dict(slow.results[0].gates["perf"].data)
    perf["cases"] = [{**perf["cases"][0], "baseline_ns": 1e3}]
    slower = saying(slow.results[0], {**said(slow.results[0]), "perf": perf})
    (machine,) = machines([evaluation("ours", slower)])

    assert machine.memory.whose == "the baseline of tasks/hip2hip/gemm f32 n=1"
    assert machine.share(machine.timed[0]) == pytest.approx(1e-3)


def test_a_cache_is_no_memory() -> None:
    """What is read from a cache sets no roof, unless nothing else was timed."""
    warm, cold = timed("gemm", bytes=9e6, flops=1), timed("scan", bytes=1e6, flops=1, cold=True)

    assert machines([warm])[0].memory.rate == pytest.approx(9e9)
    (both,) = machines([warm, cold])
    assert both.memory.rate == pytest.approx(1e9)
    assert both.cold


def test_what_was_refused_sets_no_roof() -> None:
    lie = timed("gemm", bytes=1e12, flops=1)
    refused = {"verdict": "REJECTED", "reason": "IMPLAUSIBLE", "summary": "", "detail": ""}
    (one,) = lie.results

    assert machines([evaluation("ours", saying(one, {**said(one), "unseen": refused}))]) == []


def test_without_operations_there_are_shares_and_no_plot() -> None:
    item = timed("topk", bytes=4096, flops=0)
    (machine,) = machines([item])

    assert machine.arithmetic is None
    assert panel([item], machine).plot is None
    assert task_plots([machine], "//tasks/hip2hip/topk") == []
    assert machine.share(machine.timed[0]) == 1.0
    assert "share of the roof by task" in render_page([item], title="t")


def test_ticks_have_units_and_are_few() -> None:
    (_, h200) = machines(ALL)
    plot = str(panel(ALL, h200).plot)
    ticks = re.findall(r'<text class="name"[^>]*>([^<]*)</text>', plot)

    assert {"1 TFLOP/s", "100 GFLOP/s", "1 PFLOP/s", "4.25 TB/s", "706 TFLOP/s"} <= {*ticks}
    assert "e+" not in plot
    for low, high in ((1e3, 1e15), (1.0, 9.0), (0.3, 0.5), (1e-4, 1e8)):
        assert 1 <= len(Log(low, high, 0.0, 1.0).ticks()) <= 9


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (3.94e12, "3.94 TB/s"),
        (999.9e9, "1 TB/s"),
        (1e9, "1 GB/s"),
        (18.24e9, "18.2 GB/s"),
        (691.4e6, "691 MB/s"),
        (0.5, "0.5 B/s"),
        (2e15, "2 PB/s"),
    ],
)
def test_quantities_have_three_digits_in_a_unit_that_fits(value: float, shown: str) -> None:
    assert quantity(value, "B/s") == shown


def test_dots_have_the_colour_of_their_evaluation_and_lead_to_their_task() -> None:
    plot = str(panel(ALL, machines(ALL)[0]).plot)

    assert set(re.findall(r'<circle class="series (s\d)', plot)) == {"s0", "s1"}
    assert '<a href="#tasks-hip2hip-gemm"><circle' in plot
