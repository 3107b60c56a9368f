"""The unseen gate: quadrants beside the baseline, and no excuse for a regression."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import pytest
from judging_doubles import SPEC, Doubles, careful_softmax, softmax, write_spec

from unseen import gate as unseen  # isort: skip
from base.sampler import CLASSES  # isort: skip
from truth.oracle import TaskFault  # isort: skip
from base.spec import SpecError, parse_spec  # isort: skip


def judge(folder, candidate, baseline=softmax, **changes):
    spec = parse_spec(write_spec(folder, gate="unseen", **changes))
    launcher = Doubles({"candidate": candidate, "baseline": baseline})
    verdict = unseen.run(spec, launcher)
    assert launcher.alive == 0, "a runner was left behind"
    return verdict


def knows_only_visible_shapes(x, y, scale, rows, cols, **_):
    if (rows, cols) in {(8, 64), (3, 257)}:
        softmax(x, y, scale)
    else:
        y.zero_()


def breaks_on_odd_sizes(x, y, scale, cols, **_):
    softmax(x, y, scale)
    if cols % 2:
        y.zero_()


@pytest.mark.parametrize("kernel", [softmax, careful_softmax])
def test_an_honest_kernel_passes(tmp_path, kernel):
    verdict = judge(tmp_path, kernel)

    assert verdict.outcome == "PASS", verdict.detail
    assert verdict.extra["quadrants"]["both_pass"] == len(verdict.cases) == 8
    assert verdict.extra["conditional_correctness"] == 1.0


def test_the_drawn_configs_are_recorded_and_none_was_shown(tmp_path):
    verdict = judge(tmp_path, softmax)

    names = [case["config"] for case in verdict.cases]
    assert len(set(names)) == 8
    assert not set(names) & {config["name"] for config in SPEC["configs"]}
    assert all(1 <= case["dims"]["rows"] <= 4096 for case in verdict.cases)
    assert {case["class"] for case in verdict.cases} == set(CLASSES)


def test_another_salt_draws_other_configs(tmp_path):
    names = [
        [case["config"] for case in judge(tmp_path, softmax, salt=salt).cases]
        for salt in ("one", "two", "one")
    ]
    assert names[0] == names[2] != names[1]


def test_a_kernel_for_the_visible_shapes_alone_fails(tmp_path):
    verdict = judge(tmp_path, knows_only_visible_shapes)

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")
    assert verdict.extra["quadrants"]["opt_regression"] == 8
    assert verdict.extra["conditional_correctness"] == 0.0
    assert (
        verdict.summary == "0 of 8 unseen configs pass; 8 of the failed ones pass with the baseline"
    )


def test_failing_with_the_baseline_is_no_regression_and_fixing_it_an_improvement(tmp_path):
    together = judge(tmp_path, breaks_on_odd_sizes, breaks_on_odd_sizes)
    better = judge(tmp_path, softmax, breaks_on_odd_sizes)
    worse = judge(tmp_path, breaks_on_odd_sizes, softmax)

    odd = together.extra["quadrants"]["both_fail"]
    assert 0 < odd < 8
    assert together.outcome == better.outcome == "PASS"
    assert better.extra["quadrants"]["opt_improvement"] == odd
    assert worse.outcome == "FAIL"
    assert worse.extra["quadrants"]["opt_regression"] == odd
    assert worse.extra["conditional_correctness"] == pytest.approx(1 - odd / 8)


def test_a_broken_contract_is_rejected(tmp_path):
    def mutates_large(x, y, scale, rows, cols, **_):
        softmax(x, y, scale)
        if rows * cols > 1000:
            x.zero_()

    verdict = judge(tmp_path, mutates_large)

    assert (verdict.outcome, verdict.reason) == ("REJECTED", "INPUT_MUTATED")


def test_equal_judgings_have_equal_bytes(tmp_path):
    assert judge(tmp_path, softmax).to_json() == judge(tmp_path, softmax).to_json()


def test_a_space_without_unseen_configs_is_the_task_s_fault(tmp_path):
    space = {"dims": {"rows": [8, 8], "cols": [64, 64]}, "dtypes": ["f32"]}
    with pytest.raises(TaskFault, match="no config beside the visible"):
        judge(tmp_path, softmax, space=space, configs=SPEC["configs"][:1])


def test_tensors_that_are_above_the_cap_anyway_leave_room(tmp_path):
    """As weights of fixed sizes do: a hidden config may be as large as the smallest visible one."""
    limits = {"elements": 4}

    verdict = judge(tmp_path, softmax, limits=limits)

    largest = min(c["dims"]["rows"] * c["dims"]["cols"] for c in SPEC["configs"])
    drawn = [case["dims"] for case in verdict.cases]
    assert verdict.outcome == "PASS"
    assert max(dims["rows"] * dims["cols"] for dims in drawn) <= largest


def test_more_cycles_draw_more(tmp_path):
    assert len(judge(tmp_path, softmax, policy={"cycles": 3}).cases) == 24
    with pytest.raises(SpecError):
        judge(tmp_path, softmax, policy={"cycles": 0})
