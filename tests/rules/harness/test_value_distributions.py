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


RANDOM = """
import torch

def inputs(config, generator):
    shape = config["rows"], config["cols"]
    drawn = {name: torch.randn(*shape, generator=generator) for name in "NAMES"}
    return {name: tensor.to(config["dtype"]) for name, tensor in drawn.items()}

def reference(NAMED, **_):
    return {"y": RESULT}
"""


def reference_of(result, names="x"):
    """A reference that computes ``result`` of normal inputs, each with a name of one letter."""
    text = RANDOM.replace("NAMES", names).replace("NAMED", ", ".join(names))
    return text.replace("RESULT", result)


def starts_at_zero(x, y, scale, **_):
    """Softmax whose running maximum starts at 0, not at minus infinity."""
    powers = torch.exp(x * scale - (x * scale).amax(-1, keepdim=True).clamp(min=0))
    y.copy_(powers / powers.sum(-1, keepdim=True))


def starts_at_a_sentinel(x, y, scale, **_):
    """Softmax whose running maximum starts at -10,000, the value of many masks."""
    powers = torch.exp(x * scale - (x * scale).amax(-1, keepdim=True).clamp(min=-1e4))
    y.copy_(powers / powers.sum(-1, keepdim=True))


def takes_zeros_for_gaps(x, y, scale, **_):
    """Softmax of the elements that are not zero; of rows of zeros, of all."""
    masked = torch.where((x == 0) & x.any(-1, keepdim=True), -torch.inf, x * scale)
    y.copy_(torch.softmax(masked, dim=-1))


def softmax_of_products(x, z, y, **_):
    y.copy_(torch.softmax(x * z, dim=-1))


def products_start_at_zero(x, z, y, **_):
    starts_at_zero(x * z, y, 1.0)


def variance(x, y, **_):
    y.copy_(x.double().var(-1, keepdim=True, correction=0).expand(y.shape))


def shifts_by_one_element(x, y, **_):
    """The variance by sums of squares, of values less the first one of the whole tensor."""
    near = x - x.view(-1)[0]
    squares = near.square().mean(-1, keepdim=True)
    y.copy_((squares - near.mean(-1, keepdim=True).square()).expand(y.shape))


def four_largest(x, y, **_):
    y.copy_(torch.where(x >= x.topk(4).values[:, -1:], x, 0))


def four_of_three_a_part(x, y, **_):
    """The four largest of those that are among the three largest of their part of the row."""
    parts = x.view(x.shape[0], 8, -1)
    kept = parts.topk(3).values.view(x.shape[0], -1)
    y.copy_(torch.where(x >= kept.topk(4).values[:, -1:], x, 0))


SOFTMAX = reference_of("torch.softmax(x, dim=-1)")
PRODUCTS = reference_of("torch.softmax(x * z, dim=-1)", "xz")
VARIANCE = reference_of("x.var(-1, keepdim=True, correction=0).expand(x.shape).clone()")
LARGEST = reference_of("torch.where(x >= x.topk(4).values[:, -1:], x, 0)")
BEFORE = DISTRIBUTIONS[: DISTRIBUTIONS.index("below")]
MISTAKES = [
    ("below", SOFTMAX, softmax, starts_at_zero),
    ("below", SOFTMAX, softmax, starts_at_a_sentinel),
    ("opposed", PRODUCTS, softmax_of_products, products_start_at_zero),
    ("rows", VARIANCE, variance, shifts_by_one_element),
    ("ordered", LARGEST, four_largest, four_of_three_a_part),
    ("sparse", SOFTMAX, softmax, takes_zeros_for_gaps),
]


def judge(folder, candidate, baseline, names, reference=None):
    extra = {"reference": reference} if reference else {}
    if reference == PRODUCTS:
        shape = ["T", ["rows", "cols"]]
        inputs = [["x", *shape], ["z", *shape]]
        extra["signature"] = {**SPEC["signature"], "inputs": inputs}
    policy = {"distributions": names, "edges": 0}
    spaces = {"dims": {"rows": [1, 4096], "cols": [64, 8192]}, "dtypes": ["f32"]}
    spec = write_spec(folder, policy=policy, space=spaces, configs=SPEC["configs"][:1], **extra)
    return correctness.run(
        parse_spec(spec), Doubles({"candidate": candidate, "baseline": baseline})
    )


def test_an_offset_keeps_the_spread_and_leaves_zero():
    x = torch.randn(32, 32)
    made = distributions.apply("offset", {"x": x}, torch.Generator())["x"]

    assert made.min() > 50
    assert abs(made.std() - x.std()) < 1e-3


@pytest.mark.parametrize("name", distributions.CHANGES)
def test_a_large_input_is_changed_a_few_rows_at_a_time(name, monkeypatch):
    x = torch.randn(10, 4, 8, generator=torch.Generator().manual_seed(1))
    whole = distributions.apply(name, {"x": x}, torch.Generator().manual_seed(2))["x"]
    monkeypatch.setattr(distributions, "_LARGE", 3 * 32)  # an even number of rows: 2 at a time
    seen = []
    change = distributions.CHANGES[name]

    def watched(tensor, *rest):
        seen.append(len(tensor))
        return change(tensor, *rest)

    monkeypatch.setitem(distributions.CHANGES, name, watched)
    made = distributions.apply(name, {"x": x}, torch.Generator().manual_seed(2))["x"]

    assert seen == [2] * 5
    assert (made.shape, made.dtype) == (whole.shape, whole.dtype)
    if name in {"spikes", "sparse"}:  # at random
        changed = (made != x).float().mean()
        assert 0.0 < changed < 0.8
    else:
        assert torch.equal(made, whole)


def test_sums_of_squares_that_cancel_are_found_by_an_offset(tmp_path):
    plain = judge(tmp_path, one_pass, two_passes, ["default"], CENTRED)
    assert [case["verdict"] for case in plain.cases][:3] == ["PASS", "PASS", "PASS"]

    verdict = judge(tmp_path, one_pass, two_passes, ["default", "offset"], CENTRED)

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")
    assert "(offset: values far above zero, close together)" in verdict.detail


@pytest.mark.parametrize(("name", "reference", "right", "wrong"), MISTAKES)
def test_each_distribution_finds_a_mistake_that_the_first_ones_miss(
    tmp_path, name, reference, right, wrong
):
    missed = judge(tmp_path, wrong, right, [*BEFORE], reference)
    passed = [case["stage"] for case in missed.cases if case["verdict"] == "PASS"]
    assert "distributions" in passed, missed.detail

    verdict = judge(tmp_path, wrong, right, [name], reference)

    assert verdict.outcome == "FAIL"
    assert verdict.reason in {"WRONG_RESULT", "NON_FINITE"}
    assert f"({name}: " in verdict.detail
    assert judge(tmp_path, right, right, [*DISTRIBUTIONS], reference).outcome == "PASS"


SIGNS = reference_of("x / x.abs()")
LOGARITHMS = reference_of("x.abs().log()")


def divides(x, y, **_):
    y.copy_(x / x.abs())


def compares(x, y, **_):
    """The sign, which is 0 of 0."""
    y.copy_(x.sign())


def logs(x, y, **_):
    y.copy_(x.abs().log())


def logs_what_is_not_zero(x, y, **_):
    y.copy_(x.abs().clamp(min=1e-44).log())


def test_nobody_has_to_be_right_where_the_oracle_has_no_answer(tmp_path):
    for candidate in (compares, divides):
        verdict = judge(tmp_path, candidate, divides, ["default", "sparse", "zeros"], SIGNS)
        assert verdict.outcome == "PASS", verdict.detail
        (stage,) = [case for case in verdict.cases if case["stage"] == "distributions"]
        left_out = [name.rpartition(" ")[2] for name in stage["not_applicable"]]
        assert left_out == ["(sparse)", "(zeros)"]


@pytest.mark.parametrize("name", ["zeros", "sparse"])
def test_an_infinite_answer_is_one(tmp_path, name):
    assert judge(tmp_path, logs, logs, [name], LOGARITHMS).outcome == "PASS"

    verdict = judge(tmp_path, logs_what_is_not_zero, logs, [name], LOGARITHMS)

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")
    assert f"({name}: " in verdict.detail


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_rows_far_from_zero_are_on_the_named_side(dtype):
    inputs = {"x": torch.randn(6, 7).to(dtype), "z": torch.randn(4).to(dtype)}

    def made(name):
        return distributions.apply(name, inputs, torch.Generator().manual_seed(1))

    assert (made("below")["x"] < -800).all()
    assert (made("opposed")["x"] < -90).all()
    assert (made("opposed")["z"] > 90).all()
    assert (made("rows")["x"][::2] < -800).all()
    assert (made("rows")["x"][1::2] > 800).all()
    assert torch.equal(made("rows")["z"], inputs["z"])
    assert (made("ordered")["x"][::2].double().diff(dim=-1) >= 0).all()
    assert (made("ordered")["x"][1::2].double().diff(dim=-1) <= 0).all()
    assert torch.equal(made("ordered")["x"].sort(-1).values, inputs["x"].sort(-1).values)
    assert 5 < (made("sparse")["x"] == 0).sum() < 37


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 1), (2, 0, 3)])
def test_distributions_take_any_shape(shape):
    for name in DISTRIBUTIONS:
        made = distributions.apply(name, {"x": torch.ones(shape)}, torch.Generator().manual_seed(1))
        assert made["x"].shape == shape


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_distributions_take_any_layout(name):
    def made(x):
        return distributions.apply(name, {"x": x}, torch.Generator().manual_seed(1))["x"]

    x = torch.randn(4, 3, 5)
    assert torch.equal(made(x.transpose(0, 1)), made(x.transpose(0, 1).contiguous()))


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
    assert "(non_finite: " in verdict.detail


def test_non_finite_is_tried_only_on_request():
    assert "non_finite" not in DISTRIBUTIONS
    assert "non_finite" in distributions.ON_REQUEST


@pytest.mark.parametrize("columns", [3, 64, 1000, 5000])
def test_large_inputs_are_ordered_by_some_of_their_values(columns, monkeypatch):
    x = torch.randn(4, columns, generator=torch.Generator().manual_seed(1))
    monkeypatch.setattr(distributions, "_LARGE", x.numel() // 2)
    made = distributions.apply("ordered", {"x": x}, torch.Generator())["x"]

    assert made.shape == x.shape
    for row, (rises, of) in enumerate(zip(made, x, strict=True)):
        upwards = rises.flip(0) if row % 2 else rises
        assert torch.equal(upwards, upwards.sort().values)
        assert set(rises.tolist()) <= set(of.tolist())
        assert len(rises.unique()) >= min(columns, 16)


def test_people_are_told_what_each_change_does():
    assert distributions.MEANINGS.keys() == {*distributions.CHANGES, *distributions.ON_REQUEST}
