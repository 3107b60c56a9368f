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
