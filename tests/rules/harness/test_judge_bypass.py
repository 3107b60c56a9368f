"""Results that come out right although no kernel runs are not a kernel's."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from judging_doubles import REFERENCE, Doubles, softmax, write_spec

from correctness import gate as correctness  # isort: skip
from base.spec import parse_spec  # isort: skip


def judge(folder, doubles, reference=REFERENCE):
    verdict = correctness.run(parse_spec(write_spec(folder, reference)), doubles)
    assert doubles.alive == 0, "a runner was left behind"
    return verdict


def test_results_that_wait_for_kernels_pass(tmp_path):
    doubles = Doubles({"candidate": softmax, "baseline": softmax})

    assert judge(tmp_path, doubles).outcome == "PASS"


def test_results_that_need_no_kernel_are_rejected(tmp_path):
    doubles = Doubles({"candidate": softmax, "baseline": softmax}, bypass=True)
    verdict = judge(tmp_path, doubles)

    assert (verdict.outcome, verdict.reason) == ("REJECTED", "KERNEL_BYPASSED")
    assert "100% of an output is right although no launched kernel ran" in verdict.detail
    assert [case["verdict"] for case in verdict.cases] == ["PASS"] * 5 + ["REJECTED"]


def test_a_cleared_output_is_no_result(tmp_path):
    """Where nearly all that is expected is zero, memory that was cleared proves nothing."""

    def clears(y, **_):
        y.zero_()

    reference = REFERENCE.replace("torch.softmax(x * scale, dim=-1)", "torch.zeros_like(x)")
    doubles = Doubles({"candidate": clears, "baseline": clears}, bypass=True)
    assert judge(tmp_path, doubles, reference).outcome == "PASS"
