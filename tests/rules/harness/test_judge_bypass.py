"""Results that come out right although no kernel runs are not a kernel's."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from dataclasses import replace

import pytest
from judging_doubles import REFERENCE, Doubles, softmax, write_spec

from correctness import gate as correctness  # isort: skip
from base.program import CandidateFault  # isort: skip
from terms.reasons import Reason  # isort: skip
from base.spec import parse_spec  # isort: skip
from perf import gate as perf  # isort: skip


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
    assert "100% of an output is correct although no kernel ran" in verdict.detail
    assert "REJECTED" in [case["verdict"] for case in verdict.cases]


def test_only_one_config_computed_elsewhere_is_found(tmp_path):
    """And so is what does honest work for the first one: every config is asked."""

    class OneConfig(Doubles):
        def open(self, program, signature, policy=None):
            runner = super().open(program, signature, policy)
            load = runner.load

            def loaded(config, slots):
                self.bypass = config.dims["rows"] == 3 and config.dtype == "f16"
                runner._works = self.bypass or policy is None or policy.launches
                load(config, slots)

            runner.load = loaded  # type: ignore[method-assign]
            return runner

    verdict = judge(tmp_path, OneConfig({"candidate": softmax, "baseline": softmax}))

    assert (verdict.outcome, verdict.reason) == ("REJECTED", "KERNEL_BYPASSED")
    assert "f16 rows=3 cols=257" in verdict.detail


@pytest.mark.parametrize("abi", ["hip", "python"])
def test_what_is_computed_elsewhere_under_the_clock_is_found(tmp_path, abi):
    spec = parse_spec(write_spec(tmp_path, gate="perf"))
    spec = replace(spec, candidate=replace(spec.candidate, abi=abi))
    programs = {"candidate": softmax, "baseline": softmax}
    verdict = perf.run(spec, Doubles(programs, bypass=True))
    honest = perf.run(spec, Doubles(programs))

    assert (verdict.outcome, verdict.reason) == ("REJECTED", "KERNEL_BYPASSED")
    assert honest.outcome == "PASS"


def test_a_candidate_that_fails_without_its_launches_is_asked_again(tmp_path):
    """It waits for its kernels, as it may."""

    class Waiting(Doubles):
        def open(self, program, signature, policy=None):
            runner = super().open(program, signature, policy)
            batch = runner.batch

            def waits(inputs, left_out=None):
                if left_out is not None:
                    runner.kill()
                    raise CandidateFault(Reason.TIMEOUT, "waits for its kernel")
                return batch(inputs)

            runner.batch = waits  # type: ignore[method-assign]
            return runner

    both = {"candidate": softmax, "baseline": softmax}
    assert judge(tmp_path, Waiting(both)).outcome == "PASS"
    verdict = perf.run(parse_spec(write_spec(tmp_path, gate="perf")), Waiting(both))
    assert verdict.outcome == "PASS"


def test_a_cleared_output_is_no_result(tmp_path):
    """Where nearly all that is expected is zero, memory that was cleared proves nothing."""

    def clears(y, **_):
        y.zero_()

    reference = REFERENCE.replace("torch.softmax(x * scale, dim=-1)", "torch.zeros_like(x)")
    doubles = Doubles({"candidate": clears, "baseline": clears}, bypass=True)
    assert judge(tmp_path, doubles, reference).outcome == "PASS"
