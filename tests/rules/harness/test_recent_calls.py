"""On a device both sides of a measurement are given the same small calls, which are drawn once."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import weakref

import pytest
import torch
from judging_doubles import Doubles, softmax, write_spec

from base.program import Config  # isort: skip
from base.seeds import Seeds  # isort: skip
from base.spec import parse_spec  # isort: skip
from terms.perf import PerfPolicy  # isort: skip
from truth import judge as judge_module  # isort: skip
from truth import lazy_outputs  # isort: skip
from truth.judge import Case, Judge  # isort: skip
from truth.recent import Recent  # isort: skip

ROWS, COLS = 4, 8
EXACT_BYTES = ROWS * COLS * 8


def case(number: int = 0, rows: int = ROWS) -> Case:
    dims = {"rows": rows, "cols": COLS}
    return Case("perf", Config(f"rows={rows}", dims, "f32", {"scale": 1.0}), round=number)


@pytest.fixture
def judging(tmp_path, monkeypatch):
    """A judge of a device that is none, and how often its oracle was asked."""
    launcher = Doubles({"candidate": softmax, "baseline": softmax})
    plain = Judge.assemble(parse_spec(write_spec(tmp_path)), launcher, PerfPolicy())
    parts = (plain.candidate, plain.baseline, plain.oracle, plain.assessor)
    made = Judge(*parts, Seeds("", "", "perf"), on_device=True)
    asked = {"inputs": 0, "expected": 0}

    def counted(name):
        function = getattr(plain.oracle, name)

        def call(*arguments):
            asked[name] += 1
            return function(*arguments)

        monkeypatch.setattr(plain.oracle, name, call)

    for name in asked:
        counted(name)
    return made, asked


def test_equal_cases_are_drawn_once_while_their_memory_lasts(judging):
    judge, asked = judging
    judge.remember(2 * 3 * EXACT_BYTES)
    first = [judge.call(case(number)) for number in range(3)]
    again = [judge.call(case(number)) for number in range(3)]

    assert all(one is other for one, other in zip(first, again, strict=True))
    for call in (*first, *again):
        assert call.expected["y"].shape == (ROWS, COLS)
    assert asked == {"inputs": 3, "expected": 3}


def test_other_rounds_and_sizes_have_other_inputs(judging):
    judge, _ = judging
    judge.remember(2 * 3 * EXACT_BYTES)
    one, other, larger = judge.call(case(0)), judge.call(case(1)), judge.call(case(0, rows=5))

    assert not torch.equal(one.inputs["x"], other.inputs["x"])
    assert larger.inputs["x"].shape == (5, COLS)


def test_large_calls_and_those_of_earlier_rounds_are_drawn_again(judging):
    judge, asked = judging
    judge.remember(2 * EXACT_BYTES - 2)  # too little for what is true of one call
    call, again = judge.call(case()), judge.call(case())
    assert again is call
    for which in (call, judge.call(case(1)), again):
        assert which.expected["y"].numel() == ROWS * COLS
    assert asked == {"inputs": 2, "expected": 3}

    judge.remember(0)
    before = call.inputs["x"]
    call = judge.call(case())
    assert call.inputs["x"] is not before
    assert torch.equal(call.inputs["x"], before)
    assert judge.call(case()) is not call


def test_a_large_answer_makes_room_for_the_next_call(judging, monkeypatch):
    judge, _ = judging
    call = judge.call(case())
    answer = weakref.ref(call.expected["y"])
    judge.call(case(1))
    assert answer() is not None
    monkeypatch.setattr(lazy_outputs, "_LARGE_BYTES", EXACT_BYTES - 1)
    judge.call(case(2))

    assert answer() is None
    assert call.expected["y"].shape == (ROWS, COLS)


def test_a_small_answer_does_not_keep_large_inputs(judging, monkeypatch):
    """A product of a large matrix with a vector, of 8 GiB and 8 KiB."""
    judge, _ = judging
    monkeypatch.setattr(judge.oracle, "expected", lambda *_: {"y": torch.ones(1).double()})
    monkeypatch.setattr(lazy_outputs, "_LARGE_BYTES", EXACT_BYTES // 2)
    judge.remember(2 * 8)
    call = judge.call(case())
    inputs = weakref.ref(call.inputs["x"])
    assert call.expected["y"].numel() == 1
    del call
    judge.call(case(1))

    assert inputs() is None


def test_the_first_values_stay_where_not_all_fit():
    recent = Recent[str](10)
    for key, size in enumerate((4, 4, 4, 2, 1)):
        recent.put(key, str(key), size)
    recent.put(0, "again", 1)

    assert [recent.get(key) for key in range(5)] == ["0", "1", None, "3", None]
    recent.clear()
    recent.put(4, "four", 10)
    assert [recent.get(key) for key in (0, 4)] == [None, "four"]


def test_the_state_that_calls_share_takes_no_room_of_theirs(judging, monkeypatch):
    judge, asked = judging
    weight = torch.randn(1024, COLS)
    monkeypatch.setattr(judge.oracle, "state", lambda *_: {"weight": weight})
    judge.remember(2 * 3 * EXACT_BYTES)
    for call in [judge.call(case(number % 3)) for number in range(6)]:
        assert call.inputs["weight"] is weight
        assert call.expected["y"].shape == (ROWS, COLS)

    assert asked == {"inputs": 3, "expected": 3}


def test_large_states_of_earlier_configs_are_dropped_and_drawn_again(judging, monkeypatch):
    judge, _ = judging
    drawn = []

    def state(config, generator):
        drawn.append(config.name)
        return {"weight": torch.randn(config.dims["rows"], COLS, generator=generator)}

    monkeypatch.setattr(judge.oracle, "state", state)
    monkeypatch.setattr(judge_module, "STATE_BYTES", 3 * 4 * ROWS * COLS)
    weights = [judge.call(case(rows=rows)).inputs["weight"] for rows in (4, 5, 4, 20, 6, 4)]

    assert drawn == ["rows=4", "rows=5", "rows=20", "rows=6", "rows=4"]
    assert weights[0] is weights[2]
    assert torch.equal(weights[0], weights[5])
