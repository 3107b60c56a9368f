"""Values far from zero, and values that are not finite where a task defines their results."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import pytest
import torch
from judging_doubles import SPEC, Doubles, softmax, write_spec

from correctness import gate as correctness  # isort: skip
from terms.policy import DISTRIBUTIONS

from truth import distributions  # isort: skip
from base.spec import parse_spec  # isort: skip

CENTRED = """
import torch

def inputs(config, generator):
    x = torch.randn(config["rows"], config["cols"], generator=generator)
    return {"x": x.to(config["dtype"])}

def reference(x, **_):
    x = x - x.mean(-1, keepdim=True)
    return {"y": x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt()}
"""


def two_passes(x, y, **_):
    x = x.float() - x.float().mean(-1, keepdim=True)
    y.copy_(x / (x.square().mean(-1, keepdim=True) + 1e-5).sqrt())


def one_pass(x, y, **_):
    """The variance as the difference of two large numbers."""
    mean = x.float().mean(-1, keepdim=True)
    variance = (x.float().square().mean(-1, keepdim=True) - mean.square()).clamp(min=0)
    y.copy_((x.float() - mean) / (variance + 1e-5).sqrt())


def drops_non_finite(x, y, scale, **_):
    """Softmax that drops what is not finite."""
    y.copy_(torch.softmax(torch.nan_to_num(x.float()) * scale, dim=-1))


def judge(folder, candidate, baseline, names, reference=None):
    extra = {"reference": reference} if reference else {}
    policy = {"distributions": names, "edges": 0}
    spaces = {**SPEC["space"], "dtypes": ["f32"]}
    spec = write_spec(folder, policy=policy, space=spaces, configs=SPEC["configs"][:1], **extra)
    return correctness.run(
        parse_spec(spec), Doubles({"candidate": candidate, "baseline": baseline})
    )


def test_an_offset_keeps_the_spread_and_leaves_zero():
    x = torch.randn(32, 32)
    made = distributions.apply("offset", {"x": x}, torch.Generator())["x"]

    assert made.min() > 50
    assert abs(made.std() - x.std()) < 1e-3


def test_sums_of_squares_that_cancel_are_found_by_an_offset(tmp_path):
    plain = judge(tmp_path, one_pass, two_passes, ["default"], CENTRED)
    assert [case["verdict"] for case in plain.cases][:3] == ["PASS", "PASS", "PASS"]

    verdict = judge(tmp_path, one_pass, two_passes, ["default", "offset"], CENTRED)

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")
    assert "(offset)" in verdict.detail


def test_a_stable_kernel_passes_an_offset(tmp_path):
    assert judge(tmp_path, two_passes, two_passes, ["offset"], CENTRED).outcome == "PASS"


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_non_finite_values_are_one_of_each(dtype):
    inputs = {"x": torch.randn(6, 7).to(dtype), "index": torch.arange(5)}
    made = distributions.apply("non_finite", inputs, torch.Generator().manual_seed(1))

    assert (made["x"].dtype, made["x"].shape) == (dtype, (6, 7))
    assert torch.equal(made["index"], inputs["index"])
    assert int(made["x"].isnan().sum()) == 1
    assert sorted(made["x"][made["x"].isinf()].tolist()) == [-torch.inf, torch.inf]


def test_non_finite_inputs_tell_a_kernel_that_drops_them(tmp_path):
    assert judge(tmp_path, drops_non_finite, softmax, ["default"]).outcome == "PASS"
    assert judge(tmp_path, softmax, softmax, ["non_finite"]).outcome == "PASS"

    verdict = judge(tmp_path, drops_non_finite, softmax, ["default", "non_finite"])

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")
    assert "(non_finite)" in verdict.detail


def test_non_finite_is_tried_only_on_request():
    assert "non_finite" not in DISTRIBUTIONS
    assert "non_finite" in distributions.ON_REQUEST
