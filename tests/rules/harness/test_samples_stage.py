"""The stage ``samples``: many draws show what no single call does, and a wrong ``cdf``, too."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import pytest
import torch
from judging_doubles import Doubles, write_spec
from test_sampled import COMMON, CONFIG, judge, numbers, sampler, spec_of

from admission import gate as admission  # isort: skip
from base.spec import parse_spec  # isort: skip
from correctness import gate as correctness  # isort: skip
from truth.sampling import Levels  # isort: skip

HEATED = """
def heated(logits, heat):
    return (logits / heat).softmax(-1).cumsum(-1)

def reference(logits, seed, heat, cols, **_):
    generator = torch.Generator().manual_seed(int(seed))
    drawn = torch.rand(logits.shape[0], cols, generator=generator, dtype=torch.float64)
    return {"y": torch.searchsorted(heated(logits.double(), heat), drawn).int()}

def cdf(outputs, logits, heat, **_):
    y = outputs["y"]
    known = heated(logits, heat).gather(-1, y.clamp(0, 15))
    return {"y": torch.where((y < 0) | (y > 15), float("nan"), known)}
"""
FEW = {"name": "f32 rows=32 cols=1", "dims": {"rows": 32, "cols": 1}, "dtype": "f32", "scalars": {}}
BRIEF = "Draws numbers for every row, each by itself, from what the logits and the heat say."


def heated_spec(folder, gate, reference=HEATED):
    signature = {
        "inputs": [["logits", "T", ["rows", "16"]], ["seed", "i64", ["1"]]],
        "outputs": [["y", "i32", ["rows", "cols"]]],
        "scalars": [["heat", 0.8]],
        "dims": ["rows", "cols"],
    }
    dims = {"rows": [1, 64], "cols": [1, 512]}
    admitted = {"samples": 4, "brief": BRIEF}
    made = write_spec(
        folder,
        COMMON + reference,
        signature=signature,
        space={"dims": dims, "dtypes": ["f32"], "scalars": {"heat": [0.3, 3.0]}},
        compare={"y": "sampled(seed)"},
        gate=gate,
        configs=[{**CONFIG, "scalars": {}}],
        policy=admitted if gate == "admission" else {"distributions": ["default"], "edges": 0},
    )
    return parse_spec(made)


def by_heat(logits, seed, y, rows, cols, heat, **_):
    drawn = numbers(seed, (rows, cols)).float()
    bounds = (logits.float() / heat).softmax(-1).cumsum(-1)
    y.copy_(torch.searchsorted(bounds, drawn).clamp(max=15))


def with_the_usual_heat(**given):
    by_heat(**{**given, "heat": 0.8})


def test_a_scalar_that_is_built_in_shows_in_many_draws(tmp_path):
    def judged(candidate):
        launcher = Doubles({"candidate": candidate, "baseline": by_heat})
        return correctness.run(heated_spec(tmp_path, "correctness"), launcher)

    failed = judged(with_the_usual_heat)

    assert judged(by_heat).outcome == "PASS"
    assert failed.reason == "WRONG_RESULT"
    assert failed.summary.startswith("samples: ")
    assert " heat=" in failed.detail


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("", "", ""),
        ("= heated(logits, heat)", "= heated(logits, 1.5)", "ORACLE_REJECTED"),
        ("(logits / heat)", "(logits / 0.8)", "INPUT_IGNORED"),
    ],
)
def test_a_wrong_distribution_is_not_admitted(tmp_path, old, new, reason):
    spec = heated_spec(tmp_path, "admission", HEATED.replace(old, new))

    verdict = admission.run(spec, Doubles({"candidate": by_heat, "baseline": by_heat}))

    assert verdict.reason == reason, verdict.detail
    assert not reason or "draws" in verdict.detail or "scalar 'heat'" in verdict.detail


def test_what_is_less_likely_than_anything_is_impossible():
    share = torch.tensor([0.5, 1e-12, 1e-26, 0.0]).double()
    levels = Levels.of(torch.zeros(4), share, b"lot")

    assert levels.impossible(0.0).tolist() == [False, False, False, True]
    assert levels.impossible(0.0, 2.0**32).tolist() == [False, False, True, True]


def test_the_config_with_the_most_draws_shows_a_small_bias(tmp_path):
    """It is too small to show in any single call, or in many calls that draw two values each."""
    one_row = {"name": "f32 rows=1 cols=2", "dims": {"rows": 1, "cols": 2}, "dtype": "f32"}
    configs = [{**config, "scalars": {}} for config in (one_row, CONFIG)]

    verdict = judge(tmp_path, "noise", sampler("noise", slightly_biased), configs=configs)

    assert verdict.reason == "WRONG_RESULT"
    assert "of the 65536 from element 0 on" in verdict.detail, verdict.detail


@pytest.mark.parametrize("place", [(0, 0), (7, 1), (12, 0)])
def test_a_token_that_is_the_same_for_all_seeds_shows_in_many_calls(tmp_path, place):
    """Among the other draws of its call it is one that can be."""
    dims = {"rows": 16, "cols": 2}
    config = {"name": "f32 rows=16 cols=2", "dims": dims, "dtype": "f32", "scalars": {}}
    right = sampler("tokens", numbers)

    def fixed(y, **given):
        right(y=y, **given)
        if y.shape == (16, 2):
            y[place] = 3

    verdict = judge(tmp_path, "tokens", fixed, right, configs=[config])

    assert judge(tmp_path, "tokens", right, configs=[config]).outcome == "PASS"
    assert verdict.reason == "WRONG_RESULT"
    first = place[0] * 2 + place[1]
    assert f"of those of element {first}, " in verdict.detail, verdict.detail
    assert "in 128 calls with different seeds" in verdict.detail


def test_a_row_that_is_never_drawn_is_not_admitted_as_a_right_one(tmp_path):
    """A hundredth of few draws is one, which no single call reveals."""
    right = sampler("tokens", numbers)
    admitted = {
        "samples": 4,
        "brief": "Draws a token for every element, each by itself, from the logits of its row.",
    }
    spec = spec_of(tmp_path, "tokens", gate="admission", policy=admitted, configs=[FEW])

    verdict = admission.run(spec, Doubles({"candidate": right, "baseline": right}))

    assert verdict.outcome == "PASS", verdict.detail


def test_a_dtype_without_a_visible_config_is_sampled_too(tmp_path):
    space = {"dims": {"rows": [1, 64], "cols": [1, 512]}, "dtypes": ["f32", "f16"]}
    right, wrong = sampler("noise", numbers), sampler("noise", slightly_biased)

    def wrong_in_half(y, **given):
        (wrong if y.dtype == torch.float16 else right)(y=y, **given)

    verdict = judge(tmp_path, "noise", wrong_in_half, right, space=space)

    assert verdict.reason == "WRONG_RESULT"
    assert "in f16 rows=16 cols=128" in verdict.detail, verdict.detail


def slightly_biased(seed, shape):
    return numbers(seed, shape) ** 1.06
