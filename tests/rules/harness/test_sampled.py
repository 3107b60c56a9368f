"""Outputs that are drawn: any right generator passes, and nothing that only looks drawn."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import pytest
import torch
from judging_doubles import Doubles, write_spec

from admission import gate as admission  # isort: skip
from correctness import gate as correctness  # isort: skip
from truth import sampling  # isort: skip
from truth.draws import BLOCK, Draws  # isort: skip
from truth.oracle import Oracle, TaskFault  # isort: skip
from truth.assessment import Call  # isort: skip
from truth.samples import Samples  # isort: skip
from terms.tolerance import bounds  # isort: skip
from truth.sampling import Levels  # isort: skip
from base.spec import parse_spec  # isort: skip

COMMON = """
import torch

def inputs(config, generator):
    logits = torch.randn(config["rows"], 16, generator=generator).to(config["dtype"])
    seed = torch.randint(2**62, (1,), generator=generator)
    return {"logits": logits, "seed": seed}
"""
TOKENS = """
def reference(logits, seed, cols, **_):
    generator = torch.Generator().manual_seed(int(seed))
    drawn = torch.rand(logits.shape[0], cols, generator=generator, dtype=torch.float64)
    return {"y": torch.searchsorted(logits.double().softmax(-1).cumsum(-1), drawn).int()}

def cdf(outputs, logits, **_):
    y = outputs["y"]
    total = logits.softmax(-1).cumsum(-1)
    known = total.gather(-1, y.clamp(0, 15))
    return {"y": torch.where((y < 0) | (y > 15), float("nan"), known)}
"""
NOISE = """
def reference(logits, seed, rows, cols, **_):
    generator = torch.Generator().manual_seed(int(seed))
    return {"y": torch.randn(rows, cols, generator=generator, dtype=logits.dtype)}

def cdf(outputs, **_):
    return {"y": torch.special.ndtr(outputs["y"])}
"""
DROPOUT = """
def reference(logits, seed, rows, cols, **_):
    generator = torch.Generator().manual_seed(int(seed))
    return {"y": 4.0 * (torch.rand(rows, cols, generator=generator) < 0.25).double()}

def cdf(outputs, **_):
    y = outputs["y"]
    return {"y": torch.where(y < 0, 0.0, torch.where(y < 4.0, 0.75, 1.0))}
"""
KINDS = {"tokens": ("i32", TOKENS), "noise": ("T", NOISE), "dropout": ("T", DROPOUT)}
CONFIG = {"name": "f32 rows=16 cols=128", "dims": {"rows": 16, "cols": 128}, "dtype": "f32"}


def spec_of(folder, kind, **changes):
    dtype, reference = KINDS[kind]
    inputs = [["logits", "T", ["rows", "16"]], ["seed", "i64", ["1"]]]
    signature = {
        "inputs": inputs,
        "outputs": [["y", dtype, ["rows", "cols"]]],
        "scalars": [],
        "dims": ["rows", "cols"],
    }
    settings = {
        "signature": signature,
        "compare": {"y": "sampled(seed)"},
        "space": {"dims": {"rows": [1, 64], "cols": [1, 512]}, "dtypes": ["f32"]},
        "configs": [{**CONFIG, "scalars": {}}],
        "policy": {"distributions": ["default", "zeros"], "edges": 2},
    }
    return parse_spec(write_spec(folder, COMMON + reference, **{**settings, **changes}))


def judge(folder, kind, candidate, baseline=None, **changes):
    spec = spec_of(folder, kind, **changes)
    launcher = Doubles({"candidate": candidate, "baseline": baseline or sampler(kind, numbers)})
    return correctness.run(spec, launcher)


def numbers(seed, shape):
    """Uniform numbers of another generator than the reference's: 32 bits of a mixed counter."""
    at = torch.arange(shape[0] * shape[1]).reshape(shape)
    return (mixed(at + mixed(seed)) & 0xFFFFFFFF).double() / 2**32


def mixed(x):
    """A good hash of 64-bit integers, in wrapping arithmetic."""
    for shift, factor in ((30, -0x40A7B892E31B1A47), (27, -0x6B2FB644ECCEEE15), (31, 1)):
        x = (x ^ ((x >> shift) & ((1 << (64 - shift)) - 1))) * factor
    return x


def sampler(kind, draw):
    """A kernel that turns uniform numbers, whoever makes them, into draws."""

    def run(logits, seed, y, rows, cols, **_):
        uniform = draw(seed, (rows, cols))
        if kind == "tokens":
            bounds = logits.float().softmax(-1).cumsum(-1)
            y.copy_(torch.searchsorted(bounds, uniform.float()).clamp(max=15))
        elif kind == "noise":
            y.copy_(torch.special.ndtri(uniform.clamp(2**-33, 1 - 2**-33)))
        else:
            y.copy_(4.0 * (uniform < 0.25).double())

    return run


def biased(seed, shape):
    return 0.8 * numbers(seed, shape)


def constant(seed, shape):
    return torch.full(shape, 0.3).double()


def same_in_every_row(seed, shape):
    return numbers(seed, (1, shape[1])).expand(shape)


def one_of_two_tables(seed, shape):
    return numbers(seed % 2, shape)


def unseeded(seed, shape):
    return numbers(torch.tensor([7]), shape)


def a_grid(seed, shape):
    count = shape[0] * shape[1]
    shift = int(numbers(seed, (1, 1)) * count)
    return ((torch.arange(count) + shift) % count).reshape(shape).double() / count + 1e-9


def neighbours_alike(seed, shape):
    half = numbers(seed, (shape[0], shape[1] // 2 + 1))
    return half.repeat_interleave(2, dim=1)[:, : shape[1]]


def opposites(seed, shape):
    half = numbers(seed, (shape[0], shape[1] // 2 + 1))
    return torch.stack([half, 1 - half], dim=2).reshape(shape[0], -1)[:, : shape[1]]


def leaves_the_end(seed, shape):
    drawn = numbers(seed, shape).flatten()
    drawn[-(drawn.numel() // 20) :] = 0.5
    return drawn.reshape(shape)


def period_of_prime_length(seed, shape):
    flat = torch.arange(shape[0] * shape[1]) % 397
    return numbers(seed, (1, 397)).flatten()[flat].reshape(shape)


def a_row_is_wrong(seed, shape):
    drawn = numbers(seed, shape)
    drawn[shape[0] // 2] *= 0.3
    return drawn


def low_in_even_elements(seed, shape):
    """Right for all elements together, and for none by itself."""
    drawn = numbers(seed, shape) / 2
    drawn[:, 1::2] += 0.5
    return drawn


def torch_numbers(seed, shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(int(seed) % 1000003)).double()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draw", [numbers, torch_numbers])
def test_any_right_generator_passes(tmp_path, kind, draw):
    verdict = judge(tmp_path, kind, sampler(kind, draw))

    assert verdict.outcome == "PASS", verdict.detail
    assert [case["stage"] for case in verdict.cases][4] == "samples"


@pytest.mark.parametrize(
    "draw",
    [
        biased,
        constant,
        same_in_every_row,
        one_of_two_tables,
        unseeded,
        a_grid,
        neighbours_alike,
        opposites,
        leaves_the_end,
        period_of_prime_length,
        a_row_is_wrong,
        low_in_even_elements,
    ],
)
@pytest.mark.parametrize("kind", ["tokens", "noise"])
def test_what_is_not_drawn_fails(tmp_path, kind, draw):
    verdict = judge(tmp_path, kind, sampler(kind, draw))

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")
    assert "draws" in verdict.detail, verdict.detail


@pytest.mark.parametrize("draw", [biased, constant, same_in_every_row, unseeded])
def test_what_is_not_drawn_fails_with_two_values_too(tmp_path, draw):
    assert judge(tmp_path, "dropout", sampler("dropout", draw)).reason == "WRONG_RESULT"


def test_a_value_that_cannot_be_drawn_is_named(tmp_path):
    def scales_wrongly(y, **given):
        sampler("dropout", numbers)(y=y, **given)
        y[y == 4.0] = 3.0

    verdict = judge(tmp_path, "dropout", scales_wrongly)

    assert verdict.reason == "WRONG_RESULT"
    assert "elements have impossible values; first at [" in verdict.detail


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_written_fails(tmp_path, kind):
    verdict = judge(tmp_path, kind, lambda **_: None)

    assert verdict.reason in {"INCOMPLETE_OUTPUT", "WRONG_RESULT"}


def test_values_out_of_range_are_the_candidate_s_fault(tmp_path):
    """A cdf that stumbles over garbage is asked about the reference's own draws."""
    reference = KINDS["tokens"][1].replace("y.clamp(0, 15)", "y.clamp(min=0)")
    spec = spec_of(tmp_path, "tokens")
    (tmp_path / "reference.py").write_text(COMMON + reference)

    def outside(y, **given):
        sampler("tokens", numbers)(y=y, **given)
        y[-1, -1] = 16

    launcher = Doubles({"candidate": outside, "baseline": sampler("tokens", numbers)})
    verdict = correctness.run(spec, launcher)

    assert (verdict.outcome, verdict.reason) == ("FAIL", "WRONG_RESULT")
    assert "the draws cannot be checked" in verdict.detail


def test_a_cdf_that_fails_for_right_draws_is_the_task_s_fault(tmp_path):
    spec = spec_of(tmp_path, "noise")
    (tmp_path / "reference.py").write_text((COMMON + NOISE).replace("ndtr(", "no_such("))
    launcher = Doubles({side: sampler("noise", numbers) for side in ("candidate", "baseline")})

    with pytest.raises(TaskFault, match=r"cdf\(\) raised AttributeError"):
        correctness.run(spec, launcher)


def test_a_task_without_a_cdf_is_refused(tmp_path):
    spec = spec_of(tmp_path, "noise")
    (tmp_path / "reference.py").write_text((COMMON + NOISE).replace("def cdf", "def other"))

    with pytest.raises(TaskFault, match="no function 'cdf'"):
        correctness.run(spec, Doubles({}))


@pytest.mark.parametrize(("kind", "reason"), [("tokens", ""), ("noise", "INPUT_IGNORED")])
def test_such_a_task_is_admitted(tmp_path, kind, reason):
    """No result that nobody computed passes; that noise has no use for logits is found."""
    brief = "Draws numbers for every row, each by itself, from what the logits of it say."
    configs = [{**CONFIG, "name": "c", "dims": {"rows": 64, "cols": 512}, "scalars": {}}]
    policy = {"samples": 4, "brief": brief}
    spec = spec_of(tmp_path, kind, gate="admission", policy=policy, configs=configs)
    kernel = sampler(kind, numbers)

    verdict = admission.run(spec, Doubles({"baseline": kernel, "candidate": kernel}))

    assert verdict.reason == reason, verdict.detail


def test_a_right_sampler_is_never_refused():
    """300 outputs of a right generator, of many shapes."""
    generator = torch.Generator().manual_seed(3)
    for index in range(300):
        shape = (1 + index % 40, 1 + 7 * index % 300)
        levels = torch.rand(shape, generator=generator, dtype=torch.float64)
        assert sampling.complaint(levels.flatten(), sampling.lags(shape), 0.0) == ""


@pytest.mark.parametrize("count", [512, 4096, 32768])
def test_a_bias_of_five_over_the_root_is_found(count):
    """The share of draws that is wrong by as much as the documentation states."""
    generator = torch.Generator().manual_seed(5)
    levels = torch.rand(count, generator=generator, dtype=torch.float64)
    wrong = 5 / count**0.5
    moved = torch.rand(count, generator=generator) < 2 * wrong
    levels[moved] = levels[moved] / 2

    assert "do not follow the distribution" in sampling.complaint(levels, [], 0.0)


def levels_of(values, width):
    generator = torch.Generator().manual_seed(int(values[0]))
    low = torch.rand(len(values), generator=generator).double() * (1 - width)
    return Levels.of(low, low + width, values.numpy().tobytes())


def test_draws_are_known_again_with_another_seed_only():
    values, others = torch.arange(200.0), torch.arange(200.0).flip(0)
    draws = Draws()

    def ask(asked, seed):
        return draws.repeated(asked, levels_of(asked, 2.0**-10), seed)

    assert ask(values, b"one") == ask(values, b"one") == ask(others, b"two") == ""
    assert (
        ask(values, b"two")
        == f"the draws from element {200 % BLOCK} on repeat an earlier call with another seed"
    )


def test_draws_that_could_only_come_out_so_are_not_held_against_anybody():
    values, draws = torch.zeros(200), Draws()
    lots = [Levels.of(torch.zeros(200), torch.ones(200), bytes([lot])) for lot in (1, 2)]

    for lot, seed in zip(lots, (b"one", b"two"), strict=True):
        assert draws.repeated(values, lot, seed) == ""
        assert draws.related([lot.level], frozenset({seed}), 0.0) == ""


def test_numbers_of_an_earlier_call_are_known_again_in_other_values():
    """Other logits make other tokens of the same numbers."""
    generator = torch.Generator().manual_seed(9)
    numbers, fresh = (torch.rand(1000, generator=generator).double() for _ in range(2))
    wide, narrow = torch.floor(numbers * 4), torch.floor(numbers * 9)
    draws = Draws()

    def ask(values, cells, seed):
        bounds = values / cells, (values + 1) / cells
        levels = Levels.of(*bounds, seed)
        return draws.repeated(values, levels, seed) or draws.related(
            [levels.level], frozenset({seed}), 0.0
        )

    assert ask(wide, 4, b"one") == ask(torch.floor(fresh * 9), 9, b"two") == ""
    assert "correlate with those of an earlier call" in ask(narrow, 9, b"three")


def halves_alike(levels):
    return torch.cat([levels[: len(levels) // 2]] * 2)


def far_complaint(levels, tested):
    pairs = {lag: [sampling.far_pairs(levels, tested, lag)] for lag in (512, 1024)}
    return sampling.far_complaint(pairs, 0.0)


@pytest.mark.parametrize("tested", [slice(0, 256), slice(1100, 1356), slice(1792, 2048)])
def test_a_stretch_is_compared_with_draws_far_outside_of_it(tested):
    generator = torch.Generator().manual_seed(9)
    for _ in range(50):
        levels = torch.rand(2048, generator=generator, dtype=torch.float64)
        assert far_complaint(levels, tested) == ""
        assert "pairs that are 1024 elements apart" in far_complaint(halves_alike(levels), tested)


@pytest.mark.parametrize("spoil", [None, halves_alike, lambda drawn: drawn.abs()])
def test_a_stretch_of_a_large_output_is_tested_in_timed_calls(tmp_path, spoil):
    spec = spec_of(tmp_path, "noise")
    oracle = Oracle(spec.reference, spec.signature)
    limits = bounds({"f32": {"atol": 0.0, "rtol": 0.0}})
    config, said = spec.configs[0], ""
    for seed in range(10):
        samples = Samples(oracle, spec.signature, limits, {"y": "seed"}, most=1024)
        inputs = oracle.inputs(config, torch.Generator().manual_seed(seed))
        call = Call(config, "", inputs, oracle.expected(config, inputs))
        drawn = call.expected["y"].float()
        if spoil is not None:
            drawn = spoil(drawn.flatten()).reshape(drawn.shape)
        said = said or samples.complaint(call, "y", drawn)
    assert bool(said) is (spoil is not None), said
