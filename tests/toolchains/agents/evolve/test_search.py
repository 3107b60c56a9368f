"""The loop: what is kept, what is told, what ends it, and how it goes on after a sudden end."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from budget import Limits
from endpoint import EndpointError, Trouble
from protocols import Question
from search import Settings

from .scripted import Gates, kernel, reply, run

ALONE = Settings("m", parallel=1, generations=5, soft=False)


def in_order(*texts: str) -> Callable[[Question], str]:
    """A model that says these, one after the other."""
    left = list(texts)
    return lambda _: left.pop(0)


def test_only_what_is_surely_faster_replaces_the_kernel(tmp_path: Path) -> None:
    proposals = [kernel(s) for s in (1.5, 1.4, 1.51, 1.8)]

    made = run(tmp_path, in_order(*map(reply, proposals)), Settings("m", 1, 0, 4, 1, 4, soft=False))

    assert made.kept == [kernel(1.5), kernel(1.8)]
    assert made.outcomes == ["kept", "reverted", "reverted", "kept"]
    against = [against for _, gates, against in made.gates.asked if gates == ("perf",)]
    assert against == ["", kernel(), *[kernel(1.5)] * 3]
    assert made.figures["speedup"] == pytest.approx(1.8)
    assert made.end.state == "finished"


@pytest.mark.parametrize(
    ("text", "outcome", "told"),
    [
        (reply(kernel(9, fault="WRONG_RESULT")), "wrong", "1 x WRONG_RESULT: WRONG_RESULT: it has"),
        (reply(kernel(9, fault="COMPILE_ERROR")), "wrong", "compile: FAIL (COMPILE_ERROR)"),
        ("No idea.", "malformed", "no block of code"),
        (reply(kernel(9)) + "<cut>", "malformed", "cut off at its limit"),
        (reply(f"// faster!\n{kernel()}"), "duplicate", "an earlier kernel"),
        (reply(kernel(9) + "// BREAKS\n"), "unjudged", "the machine broke"),
    ],
)
def test_what_is_not_kept_is_told_to_the_next(
    tmp_path: Path, text: str, outcome: str, told: str
) -> None:
    made = run(tmp_path, in_order(text, "Hm."), Settings("m", 1, 0, 4, 1, 2, soft=False))

    assert made.kept == []
    assert made.outcomes[0] == outcome
    assert told not in made.endpoint.asked[0].text
    assert told in made.endpoint.asked[1].text


def test_a_generation_is_timed_in_the_order_of_modelled_times(tmp_path: Path) -> None:
    slow, unknown, quick = kernel(1.2, modelled=30), kernel(1.1), kernel(2, modelled=10)
    says = in_order(*map(reply, (slow, unknown, quick)))
    original = kernel(modelled=40)

    made = run(
        tmp_path, says, Settings("m", 1, 0, 4, 3, 1, soft=False), original=original, models=True
    )

    assert made.gates.ranked == [(original, slow, unknown, quick)]
    timed = [source for source, gates, _ in made.gates.asked if gates == ("perf",)]
    assert timed == [original, quick, slow, unknown]
    assert made.outcomes == ["kept", "reverted", "reverted"]


def test_what_its_counts_make_hopeless_is_proven_but_not_timed(tmp_path: Path) -> None:
    """Only beyond eight times the best one's: the model is wrong about some that are closer."""
    hopeless, near = kernel(9, modelled=81), kernel(0.9, modelled=80)
    settings = Settings("m", 1, 0, 4, 2, 1, soft=False)
    original = kernel(modelled=10)

    made = run(
        tmp_path, in_order(reply(hopeless), reply(near)), settings, original=original, models=True
    )

    assert made.outcomes == ["reverted", "slow"]
    asked = [gates for source, gates, _ in made.gates.asked if source == hopeless]
    assert asked == [("compile", "correctness")]


def test_where_nothing_models_times_that_is_asked_once(tmp_path: Path) -> None:
    proposals = [kernel(s) for s in (1.5, 9)]

    made = run(tmp_path, in_order(*map(reply, proposals)), Settings("m", 1, 0, 4, 1, 2, soft=False))

    assert made.outcomes == ["kept", "kept"]
    assert made.gates.ranked == [(kernel(), kernel(1.5))]


def test_modelled_times_are_the_same_when_a_search_goes_on(tmp_path: Path) -> None:
    """Also that nothing models them: the next run asks no more than the first."""
    settings = Settings("m", 1, 0, 4, 2, 1, soft=False)
    proposals = [reply(kernel(s, modelled=m)) for s, m in ((1.5, 9), (2, 3))]

    first = run(tmp_path, in_order(*proposals), settings)
    again = run(tmp_path, in_order(), settings, models=True)

    assert len(first.gates.ranked) == 1
    assert again.gates.ranked == []
    assert again.outcomes == first.outcomes == ["kept", "kept"]


def test_a_kernel_without_a_modelled_time_is_asked_about_again(tmp_path: Path) -> None:
    """The machine may have failed; what is known is not asked about twice."""
    original, first, second = kernel(), kernel(1.5, modelled=9), kernel(2, modelled=8)
    settings = Settings("m", 1, 0, 4, 1, 2, soft=False)

    made = run(
        tmp_path, in_order(reply(first), reply(second)), settings, original=original, models=True
    )

    assert made.gates.ranked == [(original, first), (second,)]


def test_a_prompt_has_what_compiler_and_clock_say_and_where_time_is(tmp_path: Path) -> None:
    made = run(tmp_path, in_order("Hm."), Settings("m", 1, 0, 4, 1, 1, soft=False))

    (question,) = made.endpoint.asked
    for text in (
        kernel().strip(),
        "registers 40, spills 8",
        "large: 9000 ns a call, 4500 ns with its data in the caches",
        "its tensors, each once, at 3.641 GB/s, 0.4551 GFLOP/s, 0.125 a byte",
        "Most is to be gained at large (n = 4096, f32)",
        "would be 10.00x as fast",
    ):
        assert text in question.text
    assert "y = 2 x." in question.system
    assert "def reference()" in question.system


def test_a_config_that_resists_gives_way_to_another(tmp_path: Path) -> None:
    made = run(tmp_path, lambda _: "Hm.", Settings("m", 1, 0, 4, 1, 12, soft=False))

    found = (re.search(r"gained at (\w+)", q.text) for q in made.endpoint.asked)
    assert [match[1] for match in found if match].count("small") == 1, "it has a tenth of the time"


def test_a_skeleton_is_written_then_repaired(tmp_path: Path) -> None:
    wrong = kernel(2, fault="WRONG_RESULT")
    says = in_order(reply(wrong), reply(kernel(0.5)), reply(kernel(2)))
    skeleton = kernel(fault="LAUNCH_ERROR")

    made = run(tmp_path, says, Settings("m", 1, 0, 4, 1, 3, soft=False), original=skeleton)

    first, second, third = (question.text for question in made.endpoint.asked)
    assert "only its signature" in first
    assert "This attempt is wrong" in second
    assert wrong.strip() in second
    assert "Make it faster" in third
    assert made.kept == [kernel(0.5), kernel(2)], "a right one is better than none, however slow"


def test_no_approval_of_the_model_saves_what_is_wrong(tmp_path: Path) -> None:
    def says(question: Question) -> str:
        if "You review" in question.system:
            return "It is perfect.\ncompile: ok\nmemory: ok\nnumerics: ok\n"
        return reply(kernel(9, fault="WRONG_RESULT", name=f"k{len(question.text)}"))

    made = run(tmp_path, says, Settings("m", parallel=1, generations=4))

    assert made.kept == []
    assert made.figures["soft"]["matrices"]["numerics"]["wrong_but_said_right"] == 4


def test_a_review_that_was_right_often_enough_saves_the_gates_work(tmp_path: Path) -> None:
    def says(question: Question) -> str:
        if "You review" in question.system:
            return "compile: ok\nmemory: ok\nnumerics: wrong\n"
        return reply(kernel(9, fault="WRONG_RESULT", name=f"k{len(question.text)}"))

    made = run(tmp_path, says, Settings("m", parallel=1, generations=40))

    left_out = made.outcomes.count("left out")
    assert made.outcomes[:6] == ["wrong"] * 6
    assert made.figures["soft"]["left_out"] == left_out
    assert 0 < left_out < 34, "a part of them is judged all the same"


def test_a_review_that_is_wrong_too_often_is_asked_no_more(tmp_path: Path) -> None:
    names = itertools.count()

    def says(question: Question) -> str:
        if "You review" in question.system:
            return "compile: wrong\n"
        return reply(kernel(0.5, name=f"k{next(names)}"))

    made = run(tmp_path, says, Settings("m", parallel=1, generations=20))

    reviews = [q for q in made.endpoint.asked if "You review" in q.system]
    assert len(reviews) == 6
    assert made.outcomes == ["reverted"] * 20


@pytest.mark.parametrize(
    ("limits", "said", "turns"),
    [
        (Limits(turns=3), "all 3 turns", 3),
        (Limits(tokens=240), "all 240 tokens", 2),
        (Limits(dollars=0.0002), "all 0.0002 dollars", 2),
        (Limits(seconds=0.5), "all 0.5 seconds", 0),
    ],
)
def test_a_budget_ends_it(tmp_path: Path, limits: Limits, said: str, turns: int) -> None:
    made = run(tmp_path, lambda q: reply(kernel(len(q.text))), ALONE, limits=limits)

    assert made.end.state == "budget"
    assert said in made.end.message
    assert len(made.endpoint.asked) == turns
    assert made.entries[-2].get("usage", {}).get("turns", turns) == turns


def test_turns_asked_for_at_once_stay_within_their_number(tmp_path: Path) -> None:
    settings = Settings("m", parallel=4, generations=5, soft=False)

    made = run(tmp_path, lambda _: "Hm.", settings, limits=Limits(turns=6))

    assert len(made.endpoint.asked) == 6


@pytest.mark.parametrize(
    ("trouble", "state"), [(Trouble.DOWN, "failed"), (Trouble.DENIED, "unavailable")]
)
def test_without_the_model_it_ends_with_what_it_has(
    tmp_path: Path, trouble: Trouble, state: str
) -> None:
    answers: list[str | EndpointError] = [reply(kernel(2)), EndpointError(trouble, "no")]

    made = run(tmp_path, lambda _: answers.pop(0), ALONE)

    assert (made.end.state, made.kept) == (state, [kernel(2)])
    assert "the model does not answer: no" in made.end.message
    assert made.budget.usage()["turns"] == 1, "what was not answered is not counted"


def test_one_question_that_is_refused_ends_nothing(tmp_path: Path) -> None:
    """Too long a prompt, say; only where all are refused there is no point in going on."""
    refused = EndpointError(Trouble.REFUSED, "too long")
    answers: list[str | EndpointError] = [refused, reply(kernel(2)), refused, refused]
    settings = Settings("m", parallel=2, generations=5, soft=False)

    made = run(tmp_path, lambda _: answers.pop(0), settings)

    assert made.kept == [kernel(2)]
    assert (made.end.state, answers) == ("failed", [])
    assert sum("too long" in entry.get("text", "") for entry in made.entries) == 3


def test_where_nothing_can_be_judged_nothing_is_asked(tmp_path: Path) -> None:
    made = run(tmp_path, lambda _: "Hm.", ALONE, original=kernel() + "// BREAKS")

    assert made.end.state == "unavailable"
    assert "cannot be judged: the machine broke" in made.end.message
    assert made.endpoint.asked == []


def _inventive(question: Question) -> str:
    """A model whose answers depend on nothing but the question, of every kind."""
    if "You review" in question.system:
        return "compile: ok\nmemory: wrong\n" if len(question.text) % 3 else "numerics: ok"
    kind = len(question.text) % 5
    faults = {0: "WRONG_RESULT", 1: "COMPILE_ERROR"}
    if kind == 2:
        return "I cannot."
    speed = 1 + len(question.text) % 17 / 10
    return reply(kernel(speed, fault=faults.get(kind, "")))


def test_killed_anywhere_it_comes_to_the_same_end_and_asks_nothing_twice(tmp_path: Path) -> None:
    """The journal is cut after every line, and in the middle of every third."""
    settings = Settings("m", parallel=3, generations=4)
    whole = run(tmp_path, _inventive, settings)
    lines = (tmp_path / "journal.jsonl").read_bytes().splitlines(keepends=True)
    assert len(whole.endpoint.asked) > 12
    assert {"kept", "wrong", "malformed"} <= set(whole.outcomes)
    for count in range(len(lines) + 1):
        done = lines[:count]
        torn = lines[count][:30] if count < len(lines) and count % 3 == 0 else b""
        directory = tmp_path / str(count)
        directory.mkdir()
        (directory / "journal.jsonl").write_bytes(b"".join(done) + torn)

        resumed = run(directory, _inventive, settings)

        assert resumed.kept == whole.kept
        assert [e for e in resumed.entries if "role" in e] == [
            e for e in whole.entries if "role" in e
        ]
        assert resumed.figures == whole.figures
        assert resumed.budget.usage() == whole.budget.usage()
        replies = sum(b'"kind": "reply"' in line for line in done)
        assert len(resumed.endpoint.asked) == len(whole.endpoint.asked) - replies
        verdicts = sum(b'"kind": "verdict"' in line for line in done)
        assert len(resumed.gates.asked) == len(whole.gates.asked) - verdicts


def test_the_gates_of_this_test_reject() -> None:
    """The stand-in does what the real ones do: else the tests above prove little."""
    answer = Gates().check(kernel(fault="WRONG_RESULT"), ("compile", "correctness"))
    assert not answer.passed
