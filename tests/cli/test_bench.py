"""``kabuild bench`` by the real program: measured, recalled, and where nothing was timed."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

import pytest

from kabuild.report.bench import ASCII, BLOCKS, duration, histogram, render_bench
from tests.testkit.cli import CliWorkspace
from tests.testkit.generated import generate

from .conftest import KERNEL


def test_a_task_is_timed_recalled_and_timed_afresh(quick: CliWorkspace) -> None:
    first = quick.run("bench", "//double", "--json")
    assert first.code == 0, first.err
    again = quick.run("bench", "//double", "--json")
    fresh = quick.run("bench", "//double", "--json", "--fresh")

    assert first.out == again.out
    assert not again.executed
    assert fresh.executed == {"//double:double.perf"}
    (config,) = first.json["//double"]["configs"]
    for side in ("candidate", "baseline"):
        times = config[side]
        assert 0 < times["low_ns"] <= times["median_ns"] <= times["high_ns"]
        assert times["samples"] == sum(map(len, times["times_ns"])) >= 6
    assert config["low"] <= config["speedup"] <= config["high"]
    assert fresh.json["//double"]["configs"] != first.json["//double"]["configs"]


def test_a_person_sees_times_and_a_plot_in_any_locale(quick: CliWorkspace) -> None:
    assert quick.run("bench", "//double").code == 0
    quick.env["PYTHONIOENCODING"] = "utf-8"
    shown = quick.run("bench", "//double")
    quick.env["PYTHONIOENCODING"] = "ascii"
    plain = quick.run("bench", "//double")

    assert (shown.code, plain.code) == (0, 0), shown.err + plain.err
    words = ("//double  PASS", "f32 n=1048", "baseline", "candidate", "speedup", "at 95 %")
    for word in (*words, "processes a side, ended by ", "wanted", " cores, load "):
        assert word in shown.out
        assert word in plain.out
    assert set(BLOCKS[1:]) & set(shown.out)
    assert plain.out.isascii()
    assert "\x1b" not in shown.out


def test_a_wrong_kernel_is_not_timed(quick: CliWorkspace) -> None:
    wrong = quick.write("wrong one's.hip", KERNEL.replace("2.0f", "3.0f"))

    ran = quick.run("bench", "//double", f"--solution={wrong}", "--json")

    assert (ran.code, ran.json) == (3, {})
    assert "WRONG_RESULT" in ran.err
    # What it says to run judges the same kernel.
    said = ran.err.partition("rerun it with: ")[2].splitlines()[0]
    program, *arguments = shlex.split(said)
    again = quick.run(*arguments)
    assert (program, again.code) == ("kabuild", 3)
    assert "WRONG_RESULT" in again.out


def measured(
    *readings: dict[str, Any], warm: dict[str, float] | None = None, ramp: str = BLOCKS
) -> str:
    """What a person sees of a task with one config."""
    side = {"median_ns": 2e6, "low_ns": 2e6, "high_ns": 2e6, "processes": 1, "samples": 1}
    figures = {"speedup": 1.5, "low": 1.4, "high": 1.6}
    config = {
        "config": "f32 n=8",
        **figures,
        "faster": True,
        "cold": True,
        "slots": 4,
        "baseline_slots": 2,
        "warm": warm and {**figures, **warm},
        "baseline": {**side, "times_ns": [[2e6]]},
        "candidate": {**side, "times_ns": [[1e6]]},
    }
    stop = {"reason": "budget", "half_width": 0.067, "wanted": 0.05, "processes": 4}
    machine = {"cores": 2, "load": [1.0, 2.0, 3.0], "readings": list(readings)}
    return render_bench(
        "//a",
        {"verdict": "PASS", "summary": "", "configs": [config], "stop": stop, "machine": machine},
        ramp,
    )


def test_the_state_of_the_machine_is_shown_and_what_is_not_readable_is_said() -> None:
    nothing = {"mhz": None, "throttled": None, "stolen_ms": None}
    shown = measured(nothing, nothing)
    assert "4 processes a side, ended by budget: half-width 0.067, wanted 0.05" in shown
    assert "2 cores, load 1.00 2.00 3.00 when measured, frequency not readable, " in shown
    assert shown.endswith("throttling not readable")

    shown = measured(
        {"mhz": [1200.0, 1300.0], "throttled": 2, "stolen_ms": 10.0},
        {"mhz": [1100.0, 3500.0], "throttled": 5, "stolen_ms": 35.0},
    )
    assert shown.endswith("1100 to 3500 MHz, throttle events: 3, 25 ms stolen")


@pytest.mark.parametrize("warm", [None, {"baseline_ns": 3e6, "candidate_ns": 2e6}])
def test_repeated_calls_are_shown_where_they_were_timed(warm: dict[str, float] | None) -> None:
    reading = {"mhz": None, "throttled": None, "stolen_ms": None}
    line = "warm       1.50x ±7 % [1.4, 1.6], 3 ms to 2 ms: repeated calls, not scored"

    assert (line in measured(reading, warm=warm)) == (warm is not None)


def test_in_a_locale_without_it_the_interval_has_another_sign() -> None:
    reading = {"mhz": None, "throttled": None, "stolen_ms": None}
    plain = measured(reading, ramp=ASCII)

    assert plain.isascii()
    assert "speedup    1.50x +-7 % [1.4, 1.6]" in plain


def test_a_histogram_puts_times_where_they_belong() -> None:
    times = [1.0, 1.0, 10.0]
    for ramp in (BLOCKS, ASCII):
        plot = histogram(times, 1.0, 10.0, ramp)
        assert (plot[0], plot[-1]) == (ramp[-1], ramp[math.ceil((len(ramp) - 1) / 2)])
        assert not plot[1:-1].strip()
    assert histogram([5.0], 5.0, 5.0, ASCII).startswith("@ ")


def test_durations_have_units() -> None:
    assert [duration(ns) for ns in (0.5, 1576070.0, 2e9)] == ["0.5 ns", "1.58 ms", "2 s"]


def test_a_gate_that_keeps_no_samples_is_its_rules_mistake(tmp_path: Path) -> None:
    generate(tmp_path / "workspace", 1, shared=1, age=0)
    ran = CliWorkspace(tmp_path / "workspace", tmp_path / "store").run("bench", "//...")

    assert ran.code == 1
    assert "t0.perf wrote no samples" in ran.err
    assert "samples.json" in ran.err
