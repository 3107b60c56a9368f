"""What a rerun proves: with the same toolchains, and with others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from kabuild.bundle.compare import Comparison, Word, compare
from kabuild.bundle.environment_diff import EnvironmentDifference, other_processor
from kabuild.bundle.figures import mean_speedups
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, OutputFile
from tests.testkit.bundles import RECORD

OTHER = EnvironmentDifference(
    "toolchain python differs on this machine", ("python: pip install it",)
)
PASS = {"verdict": "PASS", "reason": ""}
FAIL = {"verdict": "FAIL", "reason": "WRONG_RESULT"}
Files = dict[str, Any]


def compared(
    then: Files,
    now: Files,
    obstacle: EnvironmentDifference | None = OTHER,
    *,
    timed: bool = False,
    derived: bool = False,
) -> Comparison:
    """The comparison of an action with these outputs; what is no bytes is JSON."""
    blobs: dict[Digest, bytes] = {}

    def kept(files: Files) -> tuple[OutputFile, ...]:
        found = []
        for path, value in files.items():
            data = value if isinstance(value, bytes) else json.dumps(value).encode()
            blobs[Digest.of(data)] = data
            found.append(OutputFile(path, Digest.of(data)))
        return tuple(found)

    record = replace(RECORD, files=kept(then), timed=timed)
    result = ActionResult(exit_code=0, files=kept(now))
    return compare(record, result, obstacle, blobs.__getitem__, derived=derived)


def test_only_equal_toolchains_prove_bytes() -> None:
    files = {"verdict.json": PASS}

    assert compared(files, files, None).word is Word.REPRODUCED
    found = compared(files, files)

    assert found.word is Word.SAME_OUTCOME
    assert found.detail == '"PASS"; toolchain python differs on this machine; byte for byte'
    assert found.remedies == OTHER.remedies


def test_a_verdict_holds_though_bytes_differ() -> None:
    then, now = ({"verdict.json": {**FAIL, "error": error}} for error in (1.0, 2.0))

    assert compared(then, now, None).word is Word.DIFFERENT
    found = compared(then, now)

    assert found.word is Word.SAME_OUTCOME
    assert found.detail.startswith('"FAIL" "WRONG_RESULT"; ')
    assert found.detail.endswith("verdict.json: error was 1.0, is 2.0")


@pytest.mark.parametrize(
    ("then", "now", "said"),
    [
        (PASS, FAIL, 'verdict was "PASS", is "FAIL"'),
        (FAIL, {**FAIL, "reason": "NON_FINITE"}, 'reason was "WRONG_RESULT", is "NON_FINITE"'),
        (b"forged", PASS, 'verdict was null, is "PASS"'),
    ],
)
@pytest.mark.parametrize("timed", [False, True])
def test_another_verdict_differs_whatever_the_toolchain(
    then: Any, now: Any, said: str, timed: bool
) -> None:
    found = compared({"verdict.json": then}, {"verdict.json": now}, timed=timed)

    assert found.word is Word.DIFFERENT
    assert found.detail == f"{said}; toolchain python differs on this machine"


def test_a_verdict_that_was_not_published_differs() -> None:
    assert compared({}, {"verdict.json": PASS}).word is Word.DIFFERENT
    assert compared({"verdict.json": PASS}, {}).word is Word.DIFFERENT


@pytest.mark.parametrize(("high", "word"), [(1.3, Word.REPRODUCED), (1.1, Word.DIFFERENT)])
def test_intervals_of_times_have_to_overlap(high: float, word: Word) -> None:
    case = {"config": "f32", "speedup": 1.0, "low": 0.9, "high": high}
    again = {"config": "f32", "speedup": 1.5, "low": 1.2, "high": 1.6}
    then, now = ({"verdict.json": {**PASS, "cases": [one]}} for one in (case, again))

    assert compared(then, now, None, timed=True).word is word
    found = compared(then, now, timed=True)
    assert found.word is Word.SAME_OUTCOME
    assert ("1.5x (1.2 to 1.6) now" in found.detail) is (word is Word.DIFFERENT)


@pytest.mark.parametrize("cases", [7, ["x"], [None], {"a": 1}])
def test_cases_that_are_none_were_not_measured(cases: Any) -> None:
    then = {"verdict.json": {**FAIL, "cases": cases}}

    assert compared(then, {"verdict.json": FAIL}, None, timed=True).word is Word.REPRODUCED
    then, now = {"verdict.json": {**PASS, "cases": cases}}, {"verdict.json": PASS}
    assert compared(then, now, None, timed=True).word is Word.DIFFERENT


def test_what_has_no_verdict_is_compared_by_what_it_made() -> None:
    assert compared({"made": b"1"}, {"made": b"1"}).word is Word.SAME_OUTCOME
    found = compared({"made": b"1"}, {"made": b"2"})

    assert found.word is Word.NOT_COMPARABLE
    assert "made: differs from byte 0" in found.detail


def test_another_processor_explains_other_digits_and_equal_ones_prove_as_much_as_ever() -> None:
    processor = other_processor("x86-64-v4", "x86-64-v3")
    then, now = ({"verdict.json": {**PASS, "error": error}} for error in (1.0, 2.0))

    assert compared(then, then, processor).word is Word.REPRODUCED
    found = compared(then, now, processor)
    assert found.word is Word.SAME_OUTCOME
    assert "its processor was x86-64-v4, this is x86-64-v3; verdict.json: error" in found.detail
    assert compared(then, {"verdict.json": FAIL}, processor).word is Word.DIFFERENT


def test_a_processor_that_is_the_same_or_unknown_explains_nothing() -> None:
    assert other_processor("x86-64-v4", "x86-64-v4") is None
    assert other_processor("", "x86-64-v4") is None


TIMED: Files = {
    "config": "f32",
    "speedup": 1.0,
    "low": 0.9,
    "high": 1.1,
    "candidate_ns": 100.0,
    "baseline_ns": 100.0,
}
OTHER_CONFIG = {**TIMED, "config": "f16"}
HONEST: Files = {**PASS, "cases": [TIMED, OTHER_CONFIG], "mean_speedup": 1.0}


def test_another_run_of_a_measurement_reproduces_it() -> None:
    again = [{**case, "candidate_ns": 130.0, "baseline_ns": 120.0} for case in HONEST["cases"]]
    now = {**HONEST, "cases": again, "mean_speedup": 1.05}
    then = {"verdict.json": HONEST, "samples.json": b"[1]"}
    found = compared(then, {"verdict.json": now, "samples.json": b"[2]"}, None, timed=True)
    assert found.word is Word.REPRODUCED, found.detail
    assert found.detail == "same verdict, intervals overlap: 1x then, 1.05x now"
    assert [figure.config for figure in found.figures] == ["f32", "f16"]
    assert {figure.then["candidate_ns"] for figure in found.figures} == {100.0}
    assert {figure.now["candidate_ns"] for figure in found.figures} == {130.0}


def test_a_mean_that_is_only_a_lower_end_is_marked() -> None:
    wide = {"mean_speedup": 1.9, "speedup_low": 1.9, "speedup_high": 90.0}
    by_configs = {"mean_speedup": 1.0, "cases": [{**TIMED, "low": 1.0, "high": 90.0}]}

    assert mean_speedups(wide, HONEST) == "~1.9x then, 1x now"
    assert mean_speedups(by_configs, {"mean_speedup": 2.81}) == "~1x then, 2.81x now"
    assert mean_speedups(wide, {}) == ""


@pytest.mark.parametrize(
    ("then", "said"),
    [
        ({**HONEST, "mean_speedup": 9.0}, "mean_speedup is 9, which is not between 0.9 and 1.1"),
        ({**HONEST, "speedup_high": 9.0}, "speedup_high is 9"),
        ({**HONEST, "cases": [{**TIMED, "speedup": 9.0}, OTHER_CONFIG]}, "f32: a speedup of 9"),
        ({**HONEST, "cases": [TIMED]}, "f16 was measured now, but not then"),
        ({**HONEST, "cases": [TIMED, TIMED, OTHER_CONFIG]}, "f32 is listed twice"),
        (
            {**HONEST, "cases": [{**TIMED, "candidate_ns": 1.0}, OTHER_CONFIG]},
            "f32: its times are 100 and 1 ns",
        ),
        (
            {**HONEST, "cases": [{**TIMED, "candidate_ns": 1.0, "baseline_ns": 1.0}, OTHER_CONFIG]},
            "f32: candidate_ns was 1, is 100",
        ),
    ],
)
def test_figures_of_a_publisher_have_to_agree_with_themselves_and_a_rerun(
    then: Files, said: str
) -> None:
    found = compared({"verdict.json": then}, {"verdict.json": HONEST}, None, timed=True)
    assert found.word is Word.DIFFERENT
    assert found.detail.startswith(said)


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ({"verdict.json": HONEST, "score.json": b"{}"}, {"verdict.json": HONEST}),
        ({"verdict.json": PASS, "score.json": b"9"}, {"verdict.json": PASS, "score.json": b"1"}),
        ({"verdict.json": PASS, "kernel.so": b"evil"}, {"verdict.json": PASS, "kernel.so": b"so"}),
        ({"hip-runner": b"evil"}, {"hip-runner": b"honest"}),
        (
            {"verdict.json": HONEST, "kernel.so": b"evil"},
            {"verdict.json": HONEST, "kernel.so": b"so"},
        ),
    ],
    ids=["a file more", "a score", "a compiled kernel", "a runner", "beside a measurement"],
)
def test_nothing_is_taken_for_a_measurement_because_a_bundle_says_so(
    then: Files, now: Files
) -> None:
    assert compared(then, now, None, timed=True).word is Word.DIFFERENT


def scored(speedup: Any, **more: Any) -> Files:
    """A score, which is made of other verdicts alone."""
    figures = {
        "speedup": speedup,
        "speedup_low": 1.9,
        "cases": [{"gate": "perf", "sure": False}],
        **more,
    }
    return {"verdict.json": {**PASS, **figures}, "score.json": {"scores": {"aka": speedup}}}


@pytest.mark.parametrize("obstacle", [OTHER, other_processor("x86-64-v9", "x86-64-v3")])
def test_no_machine_excuses_another_score_of_the_same_verdicts(
    obstacle: EnvironmentDifference,
) -> None:
    """What the bundle says of its processor and toolchains is a claim, too."""
    then, now = scored(90.0), scored(2.0)
    found = compared(then, now, obstacle, derived=True)
    assert found.word is Word.DIFFERENT
    assert found.detail.startswith("score.json: scores.aka was 90.0, is 2.0; ")
    for forged in (scored(2.0, cases=[]), scored(2.0, speedup_low=None), scored("2.0")):
        assert compared(forged, now, obstacle, derived=True).word is Word.DIFFERENT
    assert compared(then, now, obstacle).word is Word.SAME_OUTCOME, "a judge may round otherwise"


def test_a_score_with_other_last_digits_holds() -> None:
    then, now = scored(2.0 + 1e-12, summary="2x"), scored(2.0, summary="2.0x")
    assert compared(then, now, derived=True).word is Word.SAME_OUTCOME
    assert compared(now, now, None, derived=True).word is Word.REPRODUCED


SESSION = {
    "agent.json": {"agent": "mine", "seconds": 1.5},
    "calls.jsonl": b'{"seconds": 1}',
    "transcript.jsonl": b"{}",
    "solution/agent.json": b"kernel",
}


def test_a_session_of_an_agent_is_reproduced_if_its_solution_is() -> None:
    later = {**SESSION, "agent.json": {"agent": "mine", "seconds": 2.5}, "calls.jsonl": b""}

    found = compared(SESSION, later, None)
    assert (found.word, found.detail) == (
        Word.REPRODUCED,
        "the same solution; how the session went is not compared",
    )
    other = compared(SESSION, {**later, "solution/agent.json": b"another"}, None)
    assert other.word is Word.DIFFERENT
    assert "solution/agent.json" in other.detail
    lacking = compared(SESSION, {path: later[path] for path in [*later][1:]}, None)
    assert (lacking.word, lacking.detail) == (
        Word.DIFFERENT,
        "agent.json was made then, but not now",
    )


def stage(configs: list[str], verdict: str = "PASS", **more: Any) -> dict[str, Any]:
    return {"stage": "extents", "verdict": verdict, "configs": configs, "worst": {}, **more}


def judged(summary: str, *cases: dict[str, Any], verdict: str = "PASS") -> Files:
    said = {"verdict": verdict, "reason": "", "summary": summary, "cases": [*cases]}
    return {"verdict.json": said}


def test_cases_that_were_chosen_by_time_may_be_others() -> None:
    then = judged("5 cases", stage(["rows=8192"], timely=True), stage(["a"]))
    now = judged("5 cases, 1 not applicable", stage(["rows=4096"], timely=True), stage(["a"]))

    found = compared(then, now, None)

    assert found.word is Word.REPRODUCED
    assert found.detail == (
        'the same verdict; as there was time for: ["rows=8192"] then, ["rows=4096"] now'
    )


@pytest.mark.parametrize(
    ("then", "now"),
    [
        (stage(["a"]), stage(["b"])),
        (stage(["a"], timely=True), stage(["b"])),
        (stage(["a"]), stage(["b"], timely=True)),
        (stage(["a"], timely=True), stage(["b"], timely=True, reason="LATE")),
        (stage(["a"], timely=True), stage(["b"], "SKIPPED", timely=True)),
    ],
)
def test_nothing_else_of_a_verdict_may_be_another(then: Any, now: Any) -> None:
    assert compared(judged("1", then), judged("1", now), None).word is Word.DIFFERENT
    more = compared(judged("1", stage(["a"], timely=True)), judged("1", now, now), None)
    assert more.word is Word.DIFFERENT


def test_of_a_kernel_that_failed_all_is_compared() -> None:
    then, now = (judged("1", stage([c], timely=True), verdict="FAIL") for c in "ab")

    assert compared(then, now, None).word is Word.DIFFERENT
