"""Calls on other values in untimed batches: judged at once, or kept for the other side's."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
# mypy: disable-error-code="arg-type, attr-defined"

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from judging_doubles import REFERENCE, write_spec

from base.program import Batch, CandidateFault  # isort: skip
from base.spec import parse_spec  # isort: skip
from perf.gate_samples import HOST_CLOCK, SidePlan, Taken  # isort: skip
from perf.gate_turn import Turn  # isort: skip
from perf.untimed import Untimed  # isort: skip
from perf.verification import KEPT_BYTES, Verified  # isort: skip
from terms.reasons import Reason  # isort: skip
from terms.tolerance import bounds  # isort: skip
from truth import comparison  # isort: skip
from truth.assessment import Assessor, Call  # isort: skip
from truth.oracle import Oracle  # isort: skip

COUNT = 3


def right(call):
    return call.expected["y"].to(call.inputs["x"].dtype)


def wrong(call):
    return right(call) + 0.01


def nearly(call):
    """Twice as far off as the tolerance allows, but not as far as the slack for such a baseline."""
    exact = call.expected["y"]
    return (exact + 2.0 * (1e-5 * exact.square().mean().sqrt() + 1e-4 * exact)).float()


@pytest.fixture
def turns(tmp_path):
    """A function that has a side run a batch of ``COUNT`` calls, and returns what it has taken."""
    spec = parse_spec(write_spec(tmp_path, REFERENCE, gate="perf"))
    oracle = Oracle(spec.reference, spec.signature)
    assessor = Assessor(oracle, spec.signature, bounds({}), comparison.read({}, ("y",)))
    config = spec.configs[0]
    calls = []
    for seed in range(COUNT):
        drawn = oracle.inputs(config, torch.Generator().manual_seed(seed))
        calls.append(Call(config, "default", drawn, oracle.expected(config, drawn)))
    asides = SimpleNamespace(
        batches=lambda *_: 1, among=lambda *_: calls, mixed=lambda _n, _c, mixed: mixed
    )
    meter = SimpleNamespace(draw=lambda *_: [], verify=lambda *_: None)
    judge = SimpleNamespace(assessor=assessor, given_the_baseline=assessor.assess)
    untimed = Untimed(asides, judge, meter)

    def run(side, kernel, beside=None):
        outputs = tuple({"y": kernel(call)} for call in calls)
        runner = SimpleNamespace(batch=lambda _: Batch(outputs, 1, 1))
        taken = Taken()
        untimed.mix(Turn(side, 1, runner, config, SidePlan(1.0, COUNT, HOST_CLOCK), taken, beside))
        return taken

    run.refuse = untimed.refuse
    return run


def test_what_is_right_is_not_kept(turns):
    for side in ("baseline", "candidate"):
        taken = turns(side, right)
        assert [odd.doubtful for odd in taken.odd] == [None] * COUNT
        assert all(odd.excess["y"] < 0.9 for odd in taken.odd)
    turns.refuse(turns("candidate", right), turns("baseline", right))


def test_what_only_a_close_look_decides_is_not_kept(turns):
    """Steps of a quantised result, or numbers next to the limit."""

    def at_the_limit(call):
        exact = call.expected["y"]
        return (exact + 0.95 * (1e-5 * exact.square().mean().sqrt() + 1e-4 * exact)).float()

    taken = turns("candidate", at_the_limit)

    assert [odd.doubtful for odd in taken.odd] == [None] * COUNT
    assert all(0.9 < odd.excess["y"] < 1.0 for odd in taken.odd)


def test_what_is_wrong_is_found_at_once_if_the_baseline_has_run(turns):
    baseline = turns("baseline", right)
    with pytest.raises(CandidateFault) as raised:
        turns("candidate", wrong, beside=baseline)
    assert raised.value.reason is Reason.WRONG_RESULT
    assert "in an untimed call in a timed batch" in raised.value.detail


def test_what_is_wrong_is_found_when_the_baseline_has_run(turns):
    taken = turns("candidate", wrong)
    assert all(odd.doubtful for odd in taken.odd)
    with pytest.raises(CandidateFault) as raised:
        turns.refuse(taken, turns("baseline", right))
    assert raised.value.reason is Reason.WRONG_RESULT


@pytest.mark.parametrize(("theirs", "ours"), [(wrong, wrong), (nearly, nearly)])
@pytest.mark.parametrize("first", ["candidate", "baseline"])
def test_nobody_has_to_be_better_than_the_baseline(turns, theirs, ours, first):
    baseline = turns("baseline", theirs)
    assert not any(odd.doubtful for odd in baseline.odd)
    assert all((odd.excess is None) is (theirs is wrong) for odd in baseline.odd)
    if first == "baseline":
        taken = turns("candidate", ours, beside=baseline)
        assert not any(odd.doubtful for odd in taken.odd)
    else:
        taken = turns("candidate", ours)
        assert all(odd.doubtful for odd in taken.odd)
    turns.refuse(taken, baseline)


@pytest.mark.parametrize(("size", "kept"), [(1 << 20, 8), (KEPT_BYTES // 3, 3), (KEPT_BYTES, 1)])
def test_of_large_calls_the_worst_few_are_kept(size, kept):
    with torch.device("meta"):
        whole = torch.zeros(size, dtype=torch.uint8)
    verified = Verified()
    for place in range(20):
        call = SimpleNamespace(inputs={"x": whole}, place=place)
        verified.keep("y", float(place * 7 % 20), call, {"y": whole[:0]})

    assert [excess for excess, *_ in verified.worst["y"]] == [19.0 - i for i in range(kept)]
