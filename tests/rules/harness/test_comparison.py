"""Outputs that are not compared element by element: what is right passes, and nothing else."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from judging_doubles import SPEC, Doubles, write_spec

from truth import comparison, precision  # isort: skip
from correctness import gate as correctness  # isort: skip
from truth.comparison import Comparison  # isort: skip
from truth.assessment import Assessor, Call  # isort: skip
from truth.oracle import Oracle, TaskFault  # isort: skip
from base.spec import SpecError, parse_spec  # isort: skip
from base.tensors import torch_dtype  # isort: skip
from terms.dtypes import DTYPES  # isort: skip
from terms.tolerance import bounds  # isort: skip

I64 = torch.int64
REFERENCE = """
import torch

def inputs(config, generator):
    x = torch.randn(config["rows"], config["cols"], generator=generator)
    return {"x": (4 * x).round().to(config["dtype"])}

def reference(x, **_):
    return {"y": RESULT}
"""
KINDS = {
    "quantised": ("i8", "x.round().clamp(-100, 100).to(torch.int8)"),
    "sorted": ("f32", "x"),
    "topk_indices(x)": ("i64", "x.sort(dim=-1, descending=True, stable=True).indices"),
    "exact": ("f32", "x"),
}


def judge(folder, kind, candidate, baseline, compare=None, extra=""):
    dtype, result = KINDS[kind]
    signature = {**SPEC["signature"], "outputs": [["y", dtype, ["rows", "cols"]]]}
    spec = write_spec(
        folder,
        REFERENCE.replace("RESULT", result) + extra,
        signature=signature,
        compare={"y": kind} if compare is None else compare,
        space={**SPEC["space"], "dtypes": ["f32"]},
        configs=SPEC["configs"][:1],
        policy={"distributions": ["default"], "edges": 2},
    )
    return correctness.run(
        parse_spec(spec), Doubles({"candidate": candidate, "baseline": baseline})
    )


def quantise(x, y, off=0, **_):
    y.copy_((x.round().clamp(-100, 100) + off).to(torch.int8))


def off_by_one(x, y, **_):
    quantise(x, y, 1)


def off_by_two(x, y, **_):
    quantise(x, y, 2)


def backwards(x, y, **_):
    y.copy_(x.sort(-1, descending=True).values)


def copies(x, y, **_):
    y.copy_(x)


def repeats(x, y, **_):
    """Not the multiset: the largest element for all."""
    y.copy_(x.amax(-1, keepdim=True).expand_as(x))


def first_ties(x, y, **_):
    y.copy_(x.sort(dim=-1, descending=True, stable=True).indices)


def last_ties(x, y, **_):
    order = x.flip(-1).sort(dim=-1, descending=True, stable=True).indices
    y.copy_(x.shape[-1] - 1 - order)


def smallest(x, y, **_):
    y.copy_(x.sort(-1).indices)


def one_twice(x, y, **_):
    """Only the first of equal elements, as often as there are equal ones."""
    order = x.sort(dim=-1, descending=True, stable=True)
    first = (order.values.unsqueeze(-1) == order.values.unsqueeze(-2)).int().argmax(-1)
    y.copy_(order.indices.gather(-1, first))


def outside(x, y, **_):
    first_ties(x, y)
    y[:, -1] = x.shape[-1]


def nearly(x, y, **_):
    y.copy_(x * (1 + 1e-6))


@pytest.mark.parametrize(
    ("kind", "candidate", "baseline"),
    [
        ("quantised", off_by_one, quantise),
        ("sorted", backwards, copies),
        ("topk_indices(x)", last_ties, first_ties),
        ("exact", copies, copies),
    ],
)
def test_another_right_result_passes_only_where_the_kind_allows_it(
    tmp_path, kind, candidate, baseline
):
    verdict = judge(tmp_path, kind, candidate, baseline)
    assert verdict.outcome == "PASS", verdict.detail

    plain = judge(tmp_path, kind, candidate, baseline, compare={})
    assert (plain.outcome == "PASS") is (candidate is baseline)


@pytest.mark.parametrize(
    ("kind", "candidate", "baseline"),
    [
        ("quantised", off_by_two, quantise),
        ("quantised", off_by_two, off_by_one),  # the baseline's own step widens nothing
        ("sorted", repeats, copies),
        ("topk_indices(x)", smallest, first_ties),
        ("topk_indices(x)", one_twice, first_ties),
        ("topk_indices(x)", outside, first_ties),
        ("exact", nearly, copies),
    ],
)
def test_a_wrong_result_fails(tmp_path, kind, candidate, baseline):
    verdict = judge(tmp_path, kind, candidate, baseline)

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")
    assert "output 'y' differs from the reference" in verdict.detail


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_left_unwritten_fails(tmp_path, kind):
    verdict = judge(tmp_path, kind, lambda **_: None, {"quantised": quantise}.get(kind, copies))

    assert verdict.outcome == "FAIL"
    assert verdict.reason in {"INCOMPLETE_OUTPUT", "WRONG_RESULT"}


def test_a_task_cannot_have_both_a_check_and_a_comparison(tmp_path):
    with pytest.raises(TaskFault, match="has a check"):
        judge(tmp_path, "sorted", copies, copies, extra="\ndef check(*_):\n    return None\n")


@pytest.mark.parametrize("compare", [{"z": "exact"}, {"y": "exactly"}, {"y": "topk_indices"}])
def test_a_comparison_that_means_nothing_is_refused(tmp_path, compare):
    with pytest.raises(SpecError):
        judge(tmp_path, "exact", copies, copies, compare=compare)


def test_the_kinds_are_those_of_the_rules():
    from rules.harness.comparison import KINDS as DECLARED

    assert DECLARED == comparison.KINDS
    assert Comparison.parse("topk_indices( x )") == Comparison("topk_indices", "x")


@pytest.mark.parametrize(("dtype", "eps"), [("f16", 2**-10), ("bf16", 2**-7)])
def test_steps_of_low_precision_are_units_in_the_last_place(dtype, eps):
    kind = {"f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    exact = torch.tensor([1.0, 1.5, -3.0, 0.0, torch.inf, torch.nan]).double()
    ulp = torch.tensor([1.0, 1.0, -2.0, 0.0, 0.0, 0.0]).double() * eps

    for steps in (0, 1, 2):
        off, size = comparison.steps((exact + steps * ulp).to(kind), exact, dtype)
        assert off.tolist() == [steps, steps, steps, 0, 0, 0]
        assert size[:3].tolist() == ulp[:3].abs().tolist()
    off, _ = comparison.steps(torch.zeros(6).to(kind), exact, dtype)
    assert (off > 1).tolist() == [True, True, True, False, True, True]


def test_nan_is_a_choice_where_nan_is_expected():
    values = torch.tensor([[1.0, torch.nan, torch.nan, 3.0]])
    expected = torch.tensor([[1, 2]])

    assert not comparison.choices(torch.tensor([[2, 1]]), expected, values).any()
    assert comparison.choices(torch.tensor([[2, 3]]), expected, values).tolist() == [[0, torch.inf]]
    assert comparison.choices(torch.tensor([[1, 1]]), expected, values).tolist() == [[0, torch.inf]]


@pytest.mark.parametrize("dtype", ["i8", "u8", "f8e4m3", "f8e5m2", "f8e4m3fnuz", "f16", "i16"])
def test_the_most_steps_are_those_of_a_close_look(dtype):
    """Also where the distance is half a step or just one, below a power of two."""
    kind = torch_dtype(dtype)
    bits = torch.arange(256 if DTYPES[dtype].size == 1 else 65536)
    every = bits.to(torch.uint8 if DTYPES[dtype].size == 1 else torch.int32)
    every = every.view(kind) if DTYPES[dtype].size == 1 else every.to(torch.int16).view(kind)
    for far in (1, 2, 3):
        moved = every.roll(far)
        pairs = [(every[i : i + 8], moved[i : i + 8]) for i in range(0, 256, 8)]
        got, exact = (torch.stack(values) for values in zip(*pairs, strict=True))
        quick = comparison.most_steps(got, exact, dtype)
        close = torch.stack([comparison.steps(*pair, dtype)[0].max() for pair in pairs])
        assert quick.dtype == torch.float64
        assert quick.tolist() == close.tolist()
        assert (close <= 1).any() == (far == 1)


def test_steps_that_single_precision_cannot_tell_apart_are_counted_in_doubles():
    exact = torch.tensor([[1 << 24, 7], [-(1 << 30), 3]], dtype=torch.int32)
    got = exact + torch.tensor([[1, 0], [2, -1]], dtype=torch.int32)

    assert comparison.most_steps(got, exact, "i32").tolist() == [1.0, 2.0]


def test_eight_bits_take_single_precision(monkeypatch):
    seen = []
    plain = comparison.steps

    def steps(*args):
        seen.append(args[3])
        return plain(*args)

    monkeypatch.setattr(comparison, "steps", steps)
    for dtype in ("i8", "f8e4m3", "f16"):
        values = torch.zeros(1, 4).to(torch_dtype(dtype))
        comparison.most_steps(values, values, dtype)

    assert seen == [torch.float32, torch.float32, torch.float64]


@pytest.mark.parametrize("at", [0, 5, 9])
def test_every_slice_of_an_output_counts(monkeypatch, at):
    monkeypatch.setattr(precision, "SLICE", 4)
    exact = torch.arange(20, dtype=torch.int8).reshape(2, 10)
    got = exact.clone()
    got[1, at] += 3

    assert comparison.most_steps(got, exact, "i8").tolist() == [0.0, 3.0]
    assert comparison.any_different(got, exact).tolist() == [0.0, math.inf]


def test_many_calls_differ_where_one_of_their_elements_does():
    exact = torch.tensor([[1.0, math.nan], [2.0, 3.0], [4.0, 5.0]]).double()
    got = torch.tensor([[1.0, math.nan], [2.0, math.nan], [4.5, 5.0]])

    assert comparison.any_different(got, exact).tolist() == [0.0, math.inf, math.inf]
    found = [float(comparison.different(*one).max()) for one in zip(got, exact, strict=True)]
    assert found == [0.0, math.inf, math.inf]


@pytest.mark.parametrize(
    ("how", "got", "right"),
    [
        ("sorted", [3, 1, 2], True),
        ("sorted", [3, 1, 1], False),
        ("topk_indices(x)", [1, 0, 2], True),
        ("topk_indices(x)", [1, 1, 2], False),
    ],
)
def test_where_order_does_not_matter_a_first_look_does_not_compare_in_place(
    tmp_path, how, got, right
):
    signature = {**SPEC["signature"], "outputs": [["y", "i64", ["rows", "cols"]]]}
    value = write_spec(tmp_path, REFERENCE.replace("RESULT", "x"), signature=signature)
    spec = parse_spec(value)
    oracle = Oracle(spec.reference, spec.signature)
    assessor = Assessor(oracle, spec.signature, bounds({}), comparison.read({"y": how}, ("y",)))
    config = replace(spec.configs[0], dims={"rows": 1, "cols": 3})
    inputs = {"x": torch.ones(1, 3)}
    call = Call(
        config,
        "default",
        inputs,
        {"y": torch.tensor([[1, 2, 3]] if how == "sorted" else [[0, 1, 2]])},
    )

    measured = assessor.measured([call], [{"y": torch.tensor([got])}])

    assert (float(measured[0, 0]) <= 1.0) is right
    assert assessor.measured_exactly(call) == {"y"}
