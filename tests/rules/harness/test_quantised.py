"""Integers that a reference returns before they are rounded: a kernel may round ties either way."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import pytest
import torch
from judging_doubles import SPEC, Doubles, write_spec

from admission import gate as admission  # isort: skip
from base.spec import parse_spec  # isort: skip
from correctness import gate as correctness  # isort: skip
from truth.comparison import ROUNDED, most_steps, steps  # isort: skip
from truth.oracle import TaskFault  # isort: skip

REFERENCE = """
import torch

def inputs(config, generator):
    x = 40 * torch.randn(config["rows"], config["cols"], generator=generator)
    return {"x": x.clamp(-99.9, 99.9).to(config["dtype"])}

def reference(x, **_):
    return {"y": 1.27 * x}
"""
POLICIES = {
    "admission": {
        "samples": 4,
        "brief": "Rounds 1.27 times each element of x to the nearest integer, ties to either side.",
    },
    "correctness": {"distributions": ["default"], "edges": 2},
}


def spec_of(folder, compare="quantised", gate="correctness"):
    signature = {**SPEC["signature"], "outputs": [["y", "i8", ["rows", "cols"]]]}
    spec = write_spec(
        folder,
        REFERENCE,
        signature=signature,
        compare={"y": compare},
        space={**SPEC["space"], "dtypes": ["f32"]},
        configs=SPEC["configs"][:1],
        gate=gate,
        policy=POLICIES[gate],
    )
    return parse_spec(spec)


def rounding(how):
    def kernel(x, y, **_):
        y.copy_(how(1.27 * x.double()).clamp(-128, 127).to(torch.int8))

    return kernel


def half_up(x):
    return (x + 0.5).floor()


def half_away(x):
    return torch.where(x < 0, (x - 0.5).ceil(), half_up(x))


def in_single(x):
    """As a scale and its inverse do, each rounded."""
    return (x.float() / 0.37 * 0.37).round()


@pytest.mark.parametrize("how", [torch.round, half_up, half_away, in_single])
def test_any_rounding_to_the_nearest_integer_passes(tmp_path, how):
    launcher = Doubles({"candidate": rounding(how), "baseline": rounding(torch.round)})

    verdict = correctness.run(spec_of(tmp_path), launcher)

    assert verdict.outcome == "PASS", verdict.detail


def three_quarters_up(x):
    return (x + 0.75).floor()


def one_wrong(x):
    made = x.round()
    made[0, 0] += 1
    return made


def from_halves(x):
    return x.half().round()


@pytest.mark.parametrize(
    "how", [torch.floor, torch.ceil, torch.trunc, three_quarters_up, one_wrong, from_halves]
)
def test_any_other_rounding_fails(tmp_path, how):
    launcher = Doubles({"candidate": rounding(how), "baseline": rounding(torch.round)})

    verdict = correctness.run(spec_of(tmp_path), launcher)

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")
    assert f"(tolerance {ROUNDED:.2g})" in verdict.detail


def test_such_a_task_is_admitted(tmp_path):
    kernel = rounding(torch.round)

    spec = spec_of(tmp_path, gate="admission")

    verdict = admission.run(spec, Doubles({"candidate": kernel, "baseline": kernel}))

    assert verdict.outcome == "PASS", verdict.detail


def test_a_reference_that_rounds_itself_is_told(tmp_path):
    kernel = rounding(torch.round)
    spec = spec_of(tmp_path, gate="admission")
    (tmp_path / "reference.py").write_text(REFERENCE.replace("1.27 * x", "(1.27 * x).round()"))

    verdict = admission.run(spec, Doubles({"candidate": kernel, "baseline": kernel}))

    assert verdict.reason == "ORACLE_REJECTED"
    assert "return what is to be rounded to them" in verdict.detail


@pytest.mark.parametrize("compare", ["elementwise", "exact"])
def test_fractions_for_an_integer_are_the_task_s_fault_elsewhere(tmp_path, compare):
    kernel = rounding(torch.round)

    launcher = Doubles({"candidate": kernel, "baseline": kernel})

    with pytest.raises(
        TaskFault, match="declared int8: return integers, or compare 'y' as quantised"
    ):
        correctness.run(spec_of(tmp_path, compare), launcher)


def test_single_precision_suffices_for_wide_integers():
    exact = 3e6 * torch.rand(4096, generator=torch.Generator().manual_seed(0)).double()
    single = (exact.float() / 0.37).round() * 1.0
    off, _ = steps(single.to(torch.int32), exact / 0.37, "i32")

    assert float(off.max()) <= 1.0
    assert float(steps((exact / 0.37).round().int() + 3, exact / 0.37, "i32")[0].min()) > 1.0


def test_many_calls_are_measured_as_each_by_itself():
    got = torch.tensor([[3, 4, 127, 0], [-3, -2, -128, 5]], dtype=torch.int8)
    expected = torch.tensor([[3.5, 3.5, 300.0, 0.515625], [-3.0, -3.0, -300.0, torch.nan]])

    off, allowed = steps(got, expected.double(), "i8")
    together = most_steps(got, expected.double(), "i8")

    assert (off * allowed).tolist() == [[0.5, 0.5, 0.0, 0.515625], [0.0, 1.0, 0.0, 0.0]]
    assert off.amax(1).tolist() == pytest.approx([1.0, 1.0 / ROUNDED], rel=1e-4)
    assert together.tolist() == pytest.approx(off.amax(1).tolist())
