"""The correctness gate accepts honest kernels and names what is wrong with others."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import re
from itertools import count

import pytest
import torch
from judging_doubles import REFERENCE, Doubles, careful_softmax, softmax, write_spec

from correctness import gate as correctness  # isort: skip
from truth.oracle import Oracle, TaskFault  # isort: skip
from base.program import CandidateFault  # isort: skip
from terms.policy import DISTRIBUTIONS  # isort: skip
from terms.reasons import Reason  # isort: skip
from base.spec import SpecError, parse_spec  # isort: skip

STAGES = ["smoke", "sweep", "distributions", "determinism", "edges", "extents", "kernels"]


def judge(folder, candidate, baseline=softmax, doubles=None, reference=REFERENCE, **changes):
    spec = parse_spec(write_spec(folder, reference, **changes))
    launcher = doubles or Doubles({"candidate": candidate, "baseline": baseline})
    verdict = correctness.run(spec, launcher)
    assert launcher.alive == 0, "a runner was left behind"
    return verdict


def stage(verdict, name):
    return next(case for case in verdict.cases if case["stage"] == name)


@pytest.mark.parametrize("kernel", [softmax, careful_softmax])
def test_an_honest_kernel_passes_all_stages(tmp_path, kernel):
    verdict = judge(tmp_path, kernel)

    assert verdict.outcome == "PASS", verdict.detail
    assert [case["stage"] for case in verdict.cases] == STAGES
    assert {case["verdict"] for case in verdict.cases} == {"PASS"}
    assert stage(verdict, "sweep")["configs"] == ["f32 rows=8 cols=64", "f16 rows=3 cols=257"]
    assert len(stage(verdict, "distributions")["configs"]) == 2 * len(DISTRIBUTIONS)
    assert len(stage(verdict, "edges")["configs"]) == 6


def test_a_pass_reports_the_worst_element_of_each_stage(tmp_path):
    worst = stage(judge(tmp_path, careful_softmax), "sweep")["worst"]

    assert worst["output"] == "y"
    assert 0 <= worst["error"] <= worst["tolerance"]


def test_equal_judgings_have_equal_bytes(tmp_path):
    assert judge(tmp_path, softmax).to_json() == judge(tmp_path, softmax).to_json()


def test_another_artifact_is_judged_on_other_values(tmp_path):
    first = judge(tmp_path, careful_softmax)
    (tmp_path / "candidate").write_text("another program")
    spec = parse_spec({**write_spec(tmp_path)})
    (tmp_path / "candidate").write_text("another program")
    second = correctness.run(spec, Doubles({"candidate": careful_softmax, "baseline": softmax}))

    assert stage(first, "sweep")["worst"] != stage(second, "sweep")["worst"]


def zero(x, y, **_):
    y.zero_()


def constant(x, y, cols, **_):
    y.fill_(1.0 / cols)


def half_precision(x, y, scale, **_):
    y.copy_(torch.softmax((x * scale).half().float(), dim=-1).half())


def infinite(x, y, scale, **_):
    softmax(x, y, scale)
    y[-1, -1] = torch.inf


def silent(x, y, **_):
    pass


def skips_the_last_column(x, y, scale, **_):
    y[:, :-1] = torch.softmax(x.float() * scale, dim=-1)[:, :-1].to(y.dtype)


def ignores_the_scalar(x, y, **_):
    softmax(x, y, 1.0)


def only_multiples_of_64(x, y, scale, cols, **_):
    softmax(x, y, scale)
    y[:, cols // 64 * 64 :] = 0


def assumes_moderate_values(x, y, scale, **_):
    powers = torch.exp(x.float() * scale)
    y.copy_(powers / powers.sum(-1, keepdim=True))


def mutates(x, y, scale, **_):
    softmax(x, y, scale)
    x.zero_()


@pytest.mark.parametrize(
    ("kernel", "reason", "at"),
    [
        (zero, "WRONG_RESULT", "smoke"),
        (constant, "WRONG_RESULT", "smoke"),
        (half_precision, "WRONG_RESULT", "smoke"),
        (infinite, "NON_FINITE", "smoke"),
        (silent, "INCOMPLETE_OUTPUT", "smoke"),
        (skips_the_last_column, "INCOMPLETE_OUTPUT", "smoke"),
        (ignores_the_scalar, "WRONG_RESULT", "sweep"),
        (only_multiples_of_64, "WRONG_RESULT", "sweep"),
        (assumes_moderate_values, "NON_FINITE", "distributions"),
        (mutates, "INPUT_MUTATED", "smoke"),
    ],
)
def test_a_wrong_kernel_fails_for_its_reason(tmp_path, kernel, reason, at):
    verdict = judge(tmp_path, kernel)

    assert (verdict.reason, stage(verdict, at)["verdict"]) == (reason, verdict.outcome)
    assert verdict.outcome == ("REJECTED" if kernel is mutates else "FAIL")
    after = STAGES[STAGES.index(at) + 1 :]
    assert {stage(verdict, name)["verdict"] for name in after} == {"SKIPPED"}


def test_a_wrong_result_names_the_worst_element(tmp_path):
    def wrong_in_one_place(x, y, scale, **_):
        softmax(x, y, scale)
        y[2, 5] = 1.0

    verdict = judge(tmp_path, wrong_in_one_place)

    assert "output 'y' differs from the reference (float32, 8x64)" in verdict.detail
    assert "worst at [2, 5]: expected 0.0" in verdict.detail
    assert "got 1 (tolerance" in verdict.detail
    assert "in f32 rows=8 cols=64" in verdict.detail
    assert stage(verdict, "smoke")["worst"]["index"] == [2, 5]


def test_unwritten_elements_are_counted(tmp_path):
    detail = judge(tmp_path, skips_the_last_column).detail

    assert "left unwritten in 8 of 512 elements" in detail
    assert "first at [0, 63]" in detail


def test_a_kernel_wrong_at_the_edges_alone_fails_there(tmp_path):
    def wrong_for_one_column(x, y, scale, cols, **_):
        softmax(x, y, scale)
        if cols == 1:
            y.zero_()

    assert judge(tmp_path, wrong_for_one_column).summary.startswith("edges: ")


CALLS = count()


def noisy(x, y, scale, **_):
    softmax(x, y, scale)
    if y.dtype == torch.float32:
        y *= 1 + 1e-6 * (next(CALLS) % 3)


def test_differing_bits_are_nondeterministic(tmp_path):
    verdict = judge(tmp_path, noisy)

    assert (verdict.outcome, verdict.reason) == ("FAIL", "NONDETERMINISTIC")
    assert "differs between equal calls" in verdict.detail


def test_declared_nondeterminism_within_tolerance_passes(tmp_path):
    assert judge(tmp_path, noisy, policy={"deterministic": False}).outcome == "PASS"


def test_a_nondeterministic_baseline_allows_it_too(tmp_path):
    assert judge(tmp_path, noisy, noisy).outcome == "PASS"


def test_a_kernel_that_works_once_is_caught_by_the_repeats(tmp_path):
    calls: list[None] = []

    def replays(x, y, scale, **_):
        calls.append(None)
        if len(calls) > 21:  # the determinism stage comes after 1 + 2 + 18 calls
            return
        softmax(x, y, scale)

    assert judge(tmp_path, replays).reason == "INCOMPLETE_OUTPUT"


def test_a_distribution_on_which_the_baseline_fails_counts_for_nothing(tmp_path):
    verdict = judge(tmp_path, assumes_moderate_values, assumes_moderate_values)

    assert verdict.outcome == "PASS", verdict.detail
    excluded = stage(verdict, "distributions")["not_applicable"]
    assert "f32 rows=8 cols=64 (scaled_up)" in excluded
    assert "f32 rows=8 cols=64 (zeros)" not in excluded


def test_a_contract_broken_where_the_baseline_fails_is_broken_all_the_same(tmp_path):
    def mutates_large(x, y, scale, **_):
        softmax(x, y, scale)
        if x.abs().max() > 50:
            x.zero_()

    verdict = judge(tmp_path, mutates_large, assumes_moderate_values)

    assert (verdict.outcome, verdict.reason) == ("REJECTED", "INPUT_MUTATED")


def test_a_wild_baseline_excuses_little(tmp_path):
    def nearly(x, y, scale, **_):
        softmax(x, y, scale)
        y *= 1 + 1e-3

    def wildly(x, y, scale, **_):
        softmax(x, y, scale)
        y *= 1 + 1e-4 * 16

    f32 = [write_spec(tmp_path)["configs"][0]]
    space = {**write_spec(tmp_path)["space"], "dtypes": ["f32"]}
    assert judge(tmp_path, nearly, nearly, configs=f32, space=space).outcome == "PASS"
    assert judge(tmp_path, nearly, softmax, configs=f32, space=space).reason == "WRONG_RESULT"
    assert judge(tmp_path, zero, wildly, configs=f32, space=space).reason == "WRONG_RESULT"


def test_a_fault_in_a_batch_is_traced_to_its_call(tmp_path):
    def faults_on_zeros(x, y, scale, **_):
        if not x.any():
            raise CandidateFault(Reason.CRASH, "signal 11")
        softmax(x, y, scale)

    verdict = judge(tmp_path, faults_on_zeros)

    assert verdict.reason == "CRASH"
    assert "(zeros: all values zero)" in verdict.detail


def test_a_timeout_is_not_tried_again(tmp_path):
    calls: list[None] = []

    def hangs(**_):
        calls.append(None)
        raise CandidateFault(Reason.TIMEOUT, "no answer")

    assert judge(tmp_path, hangs).reason == "TIMEOUT"
    assert len(calls) <= 2  # once more where it may have waited for launches that were left out


def test_a_broken_end_is_rejected(tmp_path):
    end = CandidateFault(Reason.PROTOCOL_VIOLATION, "an answer was prepared")
    doubles = Doubles({"candidate": softmax, "baseline": softmax}, end=end)

    verdict = judge(tmp_path, softmax, doubles=doubles)

    assert (verdict.outcome, verdict.reason) == ("REJECTED", "PROTOCOL_VIOLATION")


def test_a_policy_restricts_the_distributions(tmp_path):
    verdict = judge(tmp_path, assumes_moderate_values, policy={"distributions": ["default"]})

    assert len(stage(verdict, "distributions")["configs"]) == 2


def test_a_task_may_declare_distributions_of_its_own(tmp_path):
    own = "    if config['distribution'] == 'sorted':\n        x = x.sort().values\n"
    reference = REFERENCE.replace('    return {"x"', own + '    return {"x"')

    def wrong_when_sorted(x, y, scale, **_):
        softmax(x, y, scale)
        if x.shape[1] > 1 and torch.equal(x, x.sort().values):
            y.zero_()

    policy = {"distributions": ["default", "sorted"]}
    verdict = judge(tmp_path, wrong_when_sorted, reference=reference, policy=policy)

    assert "(sorted)" in verdict.detail


@pytest.mark.parametrize(
    "policy",
    [
        {"distribution": []},
        {"repeats": 1},
        {"deterministic": 1},
        {"distributions": []},
        {"tolerance": {"f31": {}}},
        {"tolerance": {"f32": {"atol": -1}}},
    ],
)
def test_a_policy_that_means_nothing_is_refused(tmp_path, policy):
    with pytest.raises(SpecError):
        judge(tmp_path, softmax, policy=policy)


LAYERNORM = REFERENCE.replace(
    "torch.softmax(x * scale, dim=-1)",
    "(x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True, correction=0) + 1e-9).sqrt()",
)


def layernorm(x, y, **_):
    x = x.float()
    centred = x - x.mean(-1, keepdim=True)
    y.copy_(centred / (centred.square().mean(-1, keepdim=True) + 1e-9).sqrt())


def reciprocal_layernorm(x, y, cols, **_):
    x, share = x.float(), torch.tensor(1.0 / cols)
    centred = x - x.sum(-1, keepdim=True) * share
    y.copy_(centred / (centred.square().sum(-1, keepdim=True) * share + 1e-9).sqrt())


def test_an_ill_conditioned_case_rejects_nobody(tmp_path, monkeypatch):
    """The rows of `constant` have no spread: what is left of them is their rounding."""
    odd = [{"name": "odd", "dims": {"rows": 4, "cols": 61}, "dtype": "f32", "scalars": {}}]
    task = {"reference": LAYERNORM, "configs": odd}
    assert judge(tmp_path, reciprocal_layernorm, layernorm, **task).outcome == "PASS"

    for allowance in ("sensitivity", "rounding"):
        monkeypatch.setattr(Oracle, allowance, no_movement)
    refused = judge(tmp_path, reciprocal_layernorm, layernorm, **task)
    assert "(constant: all values equal)" in refused.detail


def no_movement(self, config, inputs, expected):
    return {name: value * 0 for name, value in expected.items()}


CHECKED = (
    REFERENCE
    + """
def check(inputs, outputs, expected):
    row = outputs["y"].sum(dim=-1).tolist()
    picked = [10, 20][int(row[0] < 0)]
    if abs(row[0] - 1) > 0.01:
        return f"row 0 adds up to {row[0]:.3f}"
    return None
"""
)


def test_a_check_of_the_task_replaces_the_comparison(tmp_path):
    assert judge(tmp_path, constant, reference=CHECKED).outcome == "PASS"
    verdict = judge(tmp_path, zero, reference=CHECKED)
    assert "row 0 adds up to 0.000" in verdict.detail


def test_a_check_that_stumbles_over_garbage_blames_the_garbage(tmp_path):
    stumbling = CHECKED.replace("picked = ", "picked = [1][int(row[0] > 2)] + ")

    def garbage(y, **_):
        y.fill_(7.0)

    assert judge(tmp_path, softmax, reference=stumbling).outcome == "PASS"
    assert "cannot be checked: IndexError" in judge(tmp_path, garbage, reference=stumbling).detail


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("x = ", "the import raised SyntaxError"),
        ("", "no function 'inputs'"),
        (REFERENCE.replace('config["rows"]', "5"), "'x' as 5x64, declared 8x64"),
        (REFERENCE.replace('.to(config["dtype"])', ".double()"), "'x' as float64, declared"),
        (REFERENCE.replace("dim=-1", "dim=7"), "reference() raised IndexError"),
        (REFERENCE.replace('{"y"', '{"z"'), "returned ['z'], declared ['y']"),
        (CHECKED.replace('outputs["y"]', 'outputs["q"]'), "check() raised KeyError"),
    ],
)
def test_a_broken_task_blames_nobody_else(tmp_path, reference, message):
    with pytest.raises(TaskFault, match=re.escape(message)):
        judge(tmp_path, softmax, reference=reference)
