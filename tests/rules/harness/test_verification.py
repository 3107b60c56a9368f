"""A batch verified with one look is judged as its calls are one by one."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
from judging_doubles import REFERENCE, SPEC, write_spec

from base.program import CandidateFault  # isort: skip
from terms.reasons import Reason  # isort: skip
from base.spec import parse_spec  # isort: skip
from base.tensors import torch_dtype  # isort: skip
from truth import comparison, tolerance  # isort: skip
from truth.assessment import Assessor, Call  # isort: skip
from truth.oracle import Oracle  # isort: skip
from truth.proof import Proof  # isort: skip
from terms.dtypes import DTYPES  # isort: skip
from terms.tolerance import Bound, bounds  # isort: skip
from perf.verification import Verified, Verifier  # isort: skip


@pytest.fixture
def parts(tmp_path):
    spec = parse_spec(write_spec(tmp_path, REFERENCE, gate="perf"))
    oracle = Oracle(spec.reference, spec.signature)
    assessor = Assessor(oracle, spec.signature, bounds({}), comparison.read({}, ("y",)))
    calls = []
    for seed in range(5):
        config = spec.configs[seed % 2]
        drawn = oracle.inputs(config, torch.Generator().manual_seed(seed))
        calls.append(Call(config, "default", drawn, oracle.expected(config, drawn)))
    right = [{"y": call.expected["y"].to(call.inputs["x"].dtype)} for call in calls]
    assert SPEC["signature"]["outputs"][0][0] == "y"
    return Verifier(judging(assessor)), assessor, calls, right


def judging(assessor):
    """A judge whose baseline is right on every call."""
    return SimpleNamespace(assessor=assessor, given_the_baseline=assessor.assess)


def judged(parts, outputs):
    verifier, _, calls, right = parts
    sides = Verified(), Verified()
    verifier.add(sides[0], calls, outputs, whole=True)
    verifier.add(sides[1], calls, right, whole=False)
    verifier.refuse(*sides, "in a test")


def test_an_answer_in_memory_that_is_used_again_is_compared_with_its_own_call(parts):
    """On a device the results of a reference are not copied."""
    verifier, _, calls, right = parts
    calls, right = calls[::2], right[::2]
    memory = torch.empty_like(calls[0].expected["y"])

    class Reused(dict[str, torch.Tensor]):
        def __init__(self, answer):
            super().__init__(y=answer)

        def items(self):
            memory.copy_(self["y"])
            return [("y", memory)]

    reused = [replace(call, expected=Reused(call.expected["y"])) for call in calls]
    measured = verifier._assessor.measured(reused, right)
    of_last = verifier._assessor.measured(reused, [right[-1]] * len(right))

    assert measured[:, 0].max() < 1.0
    assert (of_last[:-1, 0] > 1.0).all()


def test_a_task_without_measures_has_nothing_to_measure(parts):
    _, assessor, calls, right = parts
    assessor._oracle._check = lambda *_: None

    assert assessor.measures == ()
    assert assessor.measured(calls[:2], right[:2]).shape == (2, 0)


def test_right_outputs_pass(parts):
    judged(parts, parts[3])


def test_one_wrong_element_of_one_call_is_found(parts):
    outputs = [{"y": made["y"].clone()} for made in parts[3]]
    outputs[3]["y"][1, 7] += 0.01

    with pytest.raises(CandidateFault) as raised:
        judged(parts, outputs)
    assert raised.value.reason is Reason.WRONG_RESULT
    assert "[1, 7]" in raised.value.detail
    assert raised.value.detail.endswith("in a test")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_no_number_is_found(parts, value):
    outputs = [{"y": made["y"].clone()} for made in parts[3]]
    outputs[0]["y"][0, 0] = value

    with pytest.raises(CandidateFault) as raised:
        judged(parts, outputs)
    assert raised.value.reason is Reason.NON_FINITE


def test_what_was_left_unwritten_is_found(parts):
    outputs = [{"y": made["y"].clone()} for made in parts[3]]
    outputs[2]["y"].view(torch.int32)[2, 3] = 0x7FC0_1337
    blank = outputs[2]["y"]
    blank.view(torch.int32)[2, 3] = DTYPES["f32"].poison

    with pytest.raises(CandidateFault) as raised:
        judged(parts, outputs)
    assert raised.value.reason is Reason.INCOMPLETE_OUTPUT


@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_a_quick_look_agrees_with_a_close_one(dtype):
    kind = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[dtype]
    generator = torch.Generator().manual_seed(1)
    for scale in (1e-6, 1.0, 1e3):
        exact = torch.randn(64, 33, generator=generator).double() * scale
        got = (exact * (1 + 1e-4 * torch.randn(64, 33, generator=generator))).to(kind)
        bound = Bound(1e-3, 1e-3)
        allowed = tolerance.allowance(exact, dtype, bound)
        close = float(tolerance.excess(got, exact, dtype, allowed).max())
        quick = float(tolerance.quick_excess(got[None], exact[None], dtype, bound))
        assert quick == pytest.approx(close, rel=0.01)


@pytest.mark.parametrize("scale", [0.0, 1e-300, 1e-42, 1e-30, 1e-13])
def test_a_quick_look_suffices_for_what_is_nearly_zero(scale):
    exact = scale * torch.linspace(-1.0, 1.0, 100).double()
    bound = Bound(1e-3, 1e-3)
    for off in (0.0, 0.5, 20.0):
        allowed = tolerance.allowance(exact, "f32", bound)
        got = (exact + off * allowed).float()
        close = float(tolerance.excess(got, exact, "f32", allowed).max())
        quick = float(tolerance.quick_excess(got[None], exact[None], "f32", bound))
        assert quick == pytest.approx(close, rel=0.01, abs=1e-3)


@pytest.mark.parametrize(
    ("dtype", "beyond"),
    [("f16", 65510.0), ("bf16", 3.392e38), ("f32", 3.4028235e38), ("f32", 4e38)],
)
def test_what_a_dtype_cannot_hold_is_left_to_a_close_look(dtype, beyond):
    """The exact scale is without it: beside it, all else could be wrong."""
    exact = torch.ones(1, 10_000).double()
    exact[0, 0] = beyond
    got = torch.zeros(1, 10_000)
    got[0, 0] = math.inf

    assert math.isnan(float(tolerance.quick_excess(got, exact, dtype, Bound(1e-3, 1e-3))))


@pytest.mark.parametrize(("how", "off", "right"), [("quantised", 1, True), ("quantised", 2, False)])
@pytest.mark.parametrize("kind", ["f16", "f8e4m3"])
def test_a_small_element_beside_large_ones_counts_in_its_own_steps(tmp_path, how, off, right, kind):
    """The tolerance of a dtype follows the whole output's size."""
    assessor, call = compared(tmp_path, {"y": how}, kind, "torch.full_like(x, 64.0)")
    call.expected["y"][0, 0] = 0.25
    made = {"y": call.expected["y"].to(torch_dtype(kind))}
    bits = made["y"].view(torch.int16 if kind == "f16" else torch.int8)
    bits[0, 0] += off
    found = Verified()

    Verifier(judging(assessor)).add(found, [call], [made], whole=True)

    assert found.excess["y"] == off
    assert assessor.assess(call, made, {}).ok is right


def test_a_different_element_among_large_ones_is_no_matter_of_tolerance(tmp_path):
    assessor, call = compared(tmp_path, {"y": "exact"}, "f32", "torch.full_like(x, 64.0)")
    made = {"y": call.expected["y"].float()}
    made["y"][1, 1] += 1e-5
    found = Verified()

    Verifier(judging(assessor)).add(found, [call], [made], whole=True)

    assert found.excess["y"] == math.inf


def compared(folder, how, kind, result):
    signature = SPEC["signature"] | {"outputs": [["y", kind, ["rows", "cols"]]]}
    reference = REFERENCE.replace("torch.softmax(x * scale, dim=-1)", result)
    spec = parse_spec(write_spec(folder, reference, gate="perf", compare=how, signature=signature))
    oracle = Oracle(spec.reference, spec.signature)
    assessor = Assessor(oracle, spec.signature, bounds({}), comparison.read(spec.compare, ("y",)))
    drawn = oracle.inputs(spec.configs[0], torch.Generator().manual_seed(0))
    call = Call(spec.configs[0], "default", drawn, oracle.expected(spec.configs[0], drawn))
    return assessor, call


@pytest.mark.parametrize(
    ("how", "off", "right"),
    [
        ("quantised", 0, True),
        ("quantised", 1, True),
        ("quantised", 2, False),
        ("exact", 0, True),
        ("exact", 1, False),
    ],
)
def test_what_is_measured_exactly_takes_no_closer_look(tmp_path, monkeypatch, how, off, right):
    result = "(100 * torch.softmax(x * scale, dim=-1)).to(torch.int8)"
    assessor, call = compared(tmp_path, {"y": how}, "i8", result)
    made = {"y": call.expected["y"].clone()}
    made["y"][1, 2] += off
    closely = Mock(side_effect=assessor.excesses)
    monkeypatch.setattr(assessor, "excesses", closely)
    verifier, found = Verifier(judging(assessor)), Verified()

    verifier.add(found, [call], [made], whole=True)
    look = verifier.look([call], [made])[0]

    assert not closely.called
    assert look.decides
    assert verifier.is_right(look, {}) is right
    assert found.excess["y"] == (off if how == "quantised" else math.inf if off else 0)
    assert assessor.assess(call, made, {}).ok is right
    if not right:
        with pytest.raises(CandidateFault) as raised:
            verifier.refuse(found, Verified(), "in a test")
        assert raised.value.reason is Reason.WRONG_RESULT


@pytest.mark.parametrize(
    ("got", "expected"), [(math.nan, 1.0), (1.0, math.inf), (1.0, 1e39), (math.inf, 1e39)]
)
def test_a_quick_look_leaves_what_is_hard_to_a_close_one(got, expected):
    quick = tolerance.quick_excess(
        torch.tensor([[got]]), torch.tensor([[expected]]).double(), "f32", Bound(1e-3, 1e-3)
    )

    assert math.isnan(float(quick))


def test_only_where_zero_is_wrong_does_a_right_element_prove_work(parts):
    """A peaked softmax is nearly all zero, and memory may have been cleared before a launch."""
    _, assessor, calls, _ = parts
    call = calls[0]
    drawn = {"x": call.inputs["x"] * 1000}
    peaked = Call(call.config, "scaled_up", drawn, assessor._oracle.expected(call.config, drawn))
    right = peaked.expected["y"].to(drawn["x"].dtype)

    assert peaked.expected["y"].count_nonzero() > 2 * (right > 0.01).count_nonzero()
    assert assessor.share_right(peaked, {"y": torch.zeros_like(right)}) == 0.0
    assert assessor.share_right(peaked, {"y": right.roll(1, dims=-1)}) < 0.5
    assert assessor.share_right(peaked, {"y": right}) == 1.0


def test_poison_is_not_right_where_nan_is_expected(parts):
    """A kernel that takes logarithms leaves NaN for half of its inputs, and poison is a NaN."""
    _, assessor, calls, right = parts
    expected = calls[0].expected["y"].clone()
    expected[1:] = math.nan
    call = replace(calls[0], expected={"y": expected})
    kind = right[0]["y"].dtype
    poison = torch.full(expected.shape, DTYPES["f32"].poison, dtype=torch.int32).view(kind)
    proof = Proof(SimpleNamespace(may_prove=True), assessor)

    assert assessor.share_right(call, {"y": poison}) == 0.0
    proof.check(call, {"y": poison})
    with pytest.raises(CandidateFault) as raised:
        proof.check(call, {"y": expected.to(kind)})
    assert raised.value.reason is Reason.KERNEL_BYPASSED


def test_a_task_with_a_check_of_its_own_has_no_measure_and_is_judged_by_that(tmp_path):
    body = "return None if outputs['y'].sum() > 0 else 'too small'"
    check = f"\n\ndef check(inputs, outputs, expected):\n    {body}\n"
    spec = parse_spec(write_spec(tmp_path, REFERENCE + check, gate="perf"))
    oracle = Oracle(spec.reference, spec.signature)
    assessor = Assessor(oracle, spec.signature, bounds({}), comparison.read({}, ("y",)))
    drawn = oracle.inputs(spec.configs[0], torch.Generator().manual_seed(0))
    call = Call(spec.configs[0], "default", drawn, oracle.expected(spec.configs[0], drawn))
    assert assessor.measures == ()

    for value, reason in ((1.0, None), (-1.0, Reason.WRONG_RESULT)):
        found, beside = Verified(), Verified()
        outputs = [{"y": torch.full_like(drawn["x"], value)}]
        Verifier(judging(assessor)).add(found, [call], outputs, whole=True)
        Verifier(judging(assessor)).add(beside, [call], outputs, whole=False)
        assert (found.finding.reason if found.finding else None) is reason


def test_a_first_look_suffices_for_right_outputs_only(parts):
    verifier, _, calls, right = parts
    outputs = [{"y": made["y"].clone()} for made in right]
    outputs[1]["y"][0, 0] += 0.01
    outputs[2]["y"][0, 0] = math.nan
    outputs[4]["y"].view(torch.int32)[1, 1] = DTYPES["f32"].poison

    looks = verifier.look(calls, outputs)

    assert [verifier.is_right(look, {}) for look in looks] == [True, False, False, True, False]
    assert looks[0].excess["y"] < 0.1
    assert looks[1].excess["y"] > 1


def test_a_first_look_gives_the_slack_that_the_baseline_gives(parts):
    verifier, assessor, calls, right = parts
    offs = (0.0, 1e-6, 2e-6, 3e-6, 8e-6)
    outputs = [{"y": made["y"] + off} for made, off in zip(right, offs, strict=True)]
    slacks = (0.1, 0.5, 4.0, 100.0)
    looks = verifier.look(calls, outputs)

    assert looks[4].excess["y"] > 16
    for slack in ({"y": error} for error in slacks):
        exact = [assessor.assess(c, made, slack) for c, made in zip(calls, outputs, strict=True)]
        quick = [verifier.is_right(look, slack) for look in looks]
        assert quick == [finding.ok for finding in exact]
        found = [verifier.finding(c, o, slack) for c, o in zip(calls, outputs, strict=True)]
        assert [one.reason for one in found] == [one.reason for one in exact]


@pytest.mark.parametrize(("off", "closer"), [(0.5, 0), (0.97, 1), (1.03, 1), (3.0, 0)])
def test_only_near_the_limit_a_candidates_error_takes_a_closer_look(
    parts, monkeypatch, off, closer
):
    verifier, assessor, calls, _ = parts
    limit = tolerance.allowance(calls[0].expected["y"], "f32", bounds({})["f32"])
    outputs = {"y": (calls[0].expected["y"] + off * limit).float()}
    look_closely = Mock(side_effect=assessor.excesses)
    monkeypatch.setattr(assessor, "excesses", look_closely)
    verified = Verified()

    verifier.add(verified, calls[:1], [outputs], whole=True)

    assert look_closely.call_count == closer
    assert verified.excess["y"] == pytest.approx(off, rel=0.01)
    assert len(verified.worst.get("y", [])) == (off > 1)
