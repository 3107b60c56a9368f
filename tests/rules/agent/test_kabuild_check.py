"""What an agent reads of its checks."""

from __future__ import annotations

import kabuild_check


def test_a_verdict_is_told_in_full_and_nothing_of_it_twice() -> None:
    said = "k.hip:1:9: error: expected expression"
    failed = {"gate": "compile", "verdict": "FAIL", "reason": "COMPILE_ERROR", "summary": said}
    timed = {"gate": "perf", "verdict": "PASS", "summary": "1.50x", "detail": "f32: 1.500x"}
    staged = {**failed, "gate": "smoke", "summary": "smoke: it hangs", "detail": "it hangs\nin f32"}
    answer = kabuild_check.Answer(({**failed, "detail": f"{said}\n  int x = ;"}, timed, staged))

    assert answer.summary.splitlines() == [
        f"compile: FAIL (COMPILE_ERROR): {said}",
        "    int x = ;",
        "perf: PASS: 1.50x",
        "  f32: 1.500x",
        "smoke: FAIL (COMPILE_ERROR): smoke: it hangs",
        "  in f32",
    ]


def test_a_call_of_which_nothing_stands_out_is_told() -> None:
    launch = {"sectors_read": 8, "sectors_written": 4}
    access = {"space": "global", "warp32": {"sectors": 12}}
    shared = {"space": "shared", "warp32": {"passes": 2}}
    launches, accesses = [launch, launch], [access, shared]
    call: dict[str, object] = {"config": "f32 n=64", "launches": launches, "accesses": accesses}
    analysis = {"calls": [call], "findings": {"warp32": []}}
    verdict = {"gate": "analyze", "verdict": "PASS", "summary": "counted", "analysis": analysis}

    assert kabuild_check.Answer((verdict,)).summary.splitlines() == [
        "analyze: PASS: counted",
        "  [f32 n=64] moves at least 512 bytes from memory and 256 to it; requests move 384",
        "  no wasteful accesses for warps of 32",
        "  --json has the counts of each line",
    ]

    parts = {"f64": 1, "launch": 1000, "memory": 250, "f32": 20, "shared": 10}
    call["modelled"] = {"t1": {"gpu": "Toy 9", "ns": 1281, "parts": parts}}
    assert kabuild_check.Answer((verdict,)).summary.splitlines()[2] == (
        "    modelled on t1 (Toy 9), not measured: 1.28 µs, of which launch 1.00, memory 0.25, "
        "f32 0.02, shared 0.01"
    )
