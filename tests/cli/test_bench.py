"""``kabuild bench`` by the real program: measured, recalled, and where nothing was timed."""

from __future__ import annotations

import math

from kabuild.report.bench import ASCII, BLOCKS, duration, histogram
from tests.testkit.cli import CliWorkspace

from .conftest import KERNEL


def test_a_task_is_timed_recalled_and_timed_afresh(quick: CliWorkspace) -> None:
    first = quick.run("bench", "//double", "--json")
    assert first.code == 0, first.err
    again = quick.run("bench", "//double", "--json")
    fresh = quick.run("bench", "//double", "--json", "--fresh")

    assert first.out == again.out
    assert not again.executed
    assert "//double:double.perf" in fresh.executed
    (config,) = first.json["//double"]["configs"]
    for side in ("candidate", "baseline"):
        times = config[side]
        assert 0 < times["low_ns"] <= times["median_ns"] <= times["high_ns"]
        assert times["samples"] == sum(map(len, times["times_ns"])) >= 6
    assert config["low"] <= config["speedup"] <= config["high"]
    assert fresh.json["//double"]["configs"] != first.json["//double"]["configs"]


def test_a_person_sees_times_and_a_plot_in_any_locale(quick: CliWorkspace) -> None:
    quick.env["PYTHONIOENCODING"] = "utf-8"
    shown = quick.run("bench", "//double")
    quick.env["PYTHONIOENCODING"] = "ascii"
    plain = quick.run("bench", "//double")

    assert (shown.code, plain.code) == (0, 0), shown.err + plain.err
    for word in ("//double  PASS", "f32 n=1048", "baseline", "candidate", "speedup", "at 95 %"):
        assert word in shown.out
        assert word in plain.out
    assert set(BLOCKS[1:]) & set(shown.out)
    assert plain.out.isascii()
    assert "\x1b" not in shown.out


def test_a_wrong_kernel_is_not_timed(quick: CliWorkspace) -> None:
    wrong = quick.write("wrong.hip", KERNEL.replace("2.0f", "3.0f"))

    ran = quick.run("bench", "//double", f"--solution={wrong}", "--json")

    assert (ran.code, ran.json) == (3, {})


def test_a_histogram_puts_times_where_they_belong() -> None:
    times = [1.0, 1.0, 10.0]
    for ramp in (BLOCKS, ASCII):
        plot = histogram(times, 1.0, 10.0, ramp)
        assert (plot[0], plot[-1]) == (ramp[-1], ramp[math.ceil((len(ramp) - 1) / 2)])
        assert not plot[1:-1].strip()
    assert histogram([5.0], 5.0, 5.0, ASCII).startswith("@ ")


def test_durations_have_units() -> None:
    assert [duration(ns) for ns in (0.5, 1576070.0, 2e9)] == ["0.5 ns", "1.58 ms", "2 s"]
