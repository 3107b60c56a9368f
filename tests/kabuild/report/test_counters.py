"""What ``analyze`` prints of a GPU's counters."""

from __future__ import annotations

from typing import Any

import pytest

from kabuild.report.counters import render_counters

FIGURES = {
    "time_ns": 90000.0,
    "compute_percent": 22.4,
    "memory_percent": 88.0,
    "tensor_percent": 0.2,
    "registers": 32.0,
    "memory_read_bytes": 1000000.0,
    "memory_written_bytes": 2000.0,
}


def launch(kernel: str, **changed: float) -> dict[str, Any]:
    figures = {**FIGURES, **changed}
    return {"kernel": kernel, "grid": [2048, 1, 1], "block": [256, 1, 1], "figures": figures}


def call(config: str, *launches: dict[str, Any], **changed: object) -> dict[str, Any]:
    return {"config": config, "whole": True, "fault": "", "launches": list(launches), **changed}


def told(*calls: dict[str, Any], findings: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    return {"schema": 1, "profiler": "Prof", "calls": list(calls), "findings": list(findings)}


def finding(config: str) -> dict[str, Any]:
    return {
        "kind": "MEMORY_BOUND",
        "config": config,
        "kernel": "slow<float>",
        "share": 0.9,
        "text": "memory is busy 88% of the time; move fewer bytes",
    }


def test_the_call_that_takes_longest_is_shown() -> None:
    longest = call("f32 n=9", launch("fast", time_ns=10000.0), launch("slow<float>"))
    short = call("f32 n=1", launch("slow<float>", time_ns=50.0))
    findings = (finding("f32 n=1"), finding("f32 n=9"))

    shown = render_counters("//a", told(short, longest, findings=findings)).splitlines()

    assert shown == [
        "//a: counted in 2 calls by Prof, whose times are no measurement of the judge's",
        "",
        "  config f32 n=9, 100 µs under the profiler",
        "",
        "  kernel       launches   time  share  blocks  threads  registers  busy",
        (
            "  slow<float>         1  90 µs    90%    2048      256         32  arithmetic 22%, "
            "memory 88%"
        ),
        (
            "  fast                1  10 µs    10%    2048      256         32  arithmetic 22%, "
            "memory 88%"
        ),
        "  moves 2,000,000 bytes from memory and 4,000 to it",
        "  of all configs this one takes longest; --json also has 1 other config",
        "",
        (
            "  1. slow<float> (90% of the time): memory is busy 88% of the time; move fewer bytes "
            "[MEMORY_BOUND]"
        ),
    ]


@pytest.mark.parametrize(
    ("one", "said"),
    [
        (call("f32 n=9"), "no kernel was launched"),
        (call("f32 n=9", launch("a"), whole=False), "only the first 1 launches were counted"),
        (call("f32 n=9", fault="TIMEOUT", whole=False), "the call failed: TIMEOUT"),
        (call("f32 n=9", *(launch(f"k{i}") for i in range(12))), "2 faster kernels in --json"),
        (call("f32 n=9", launch("a", tensor_percent=40.0)), "tensor cores 40%"),
        (call("f32 n=9", {**launch("a"), "figures": {}}), "config f32 n=9, 0 ns"),
    ],
)
def test_what_is_missing_is_said(one: dict[str, Any], said: str) -> None:
    assert said in render_counters("//a", told(one))


def test_bytes_that_were_not_counted_of_all_launches_are_not_summed() -> None:
    other = {**launch("a"), "figures": {"time_ns": 1.0}}

    assert "moves" not in render_counters("//a", told(call("f32 n=9", launch("a"), other)))


@pytest.mark.parametrize("damaged", [{}, {"calls": [{}], "profiler": "", "findings": []}])
def test_another_form_is_refused(damaged: dict[str, Any]) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        render_counters("//a", damaged)
