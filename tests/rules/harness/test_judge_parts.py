"""Specs, seeds, shapes, tolerances, distributions and the clock, each alone."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from judging_doubles import REFERENCE, SPEC, write_spec
from terms.policy import DISTRIBUTIONS

from truth import distributions  # isort: skip
from perf import plausibility  # isort: skip
from base import shapes  # isort: skip
from truth import comparison, tolerance  # isort: skip
from terms import verdict  # isort: skip
from terms.reasons import Reason  # isort: skip
from kabuild.model.verdict import GateVerdict
from kabuild.model.verdict import Verdict as Outcome

from base.tensors import torch_dtype  # isort: skip
from terms.dtypes import DTYPES, ONLY_GIVEN  # isort: skip
from truth.oracle import Oracle  # isort: skip
from base.program import Config  # isort: skip
from base.seeds import Seeds, Stream, derive  # isort: skip
from base.spec import SpecError, parse_spec, read_spec  # isort: skip
from terms.tolerance import BOUNDS, Bound, bounds  # isort: skip

F32 = BOUNDS["f32"]


# spec.json


def test_a_spec_is_read(tmp_path):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(write_spec(tmp_path)))
    spec = read_spec(path)

    assert spec.signature.dims == ("rows", "cols")
    assert spec.candidate.runner == "runner/hip-runner"
    assert spec.configs[1].scalars == {"scale": 0.5}
    assert (spec.elements, spec.space.dims["cols"]) == (4096, (1, 8192))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "schema 1"),
        ({"gate": "../score"}, "unknown judging gate '../score'"),
        ({"candidate": {"abi": "cuda"}}, "unknown abi 'cuda'"),
        ({"configs": []}, "no configs"),
        ({"configs": [SPEC["configs"][0]] * 2}, "same name"),
        ({"configs": [{**SPEC["configs"][0], "dtype": "bf16"}]}, "outside the shape space"),
        ({"configs": [{**SPEC["configs"][0], "dims": {"rows": 1}}]}, "outside the shape space"),
        ({"configs": [{**SPEC["configs"][0], "scalars": {"q": 1}}]}, "'q', which is not a scalar"),
        ({"space": {"dims": {"rows": [2, 1]}, "dtypes": ["f32"]}}, "bounds of dim 'rows'"),
        ({"space": {**SPEC["space"], "dtypes": ["f31"]}}, "invalid dtypes"),
        ({"space": {**SPEC["space"], "scalars": {"scale": [2, 1]}}}, "bounds of scalar 'scale'"),
        ({"space": {**SPEC["space"], "scalars": {"q": [1, 2]}}}, "'q', which is not a scalar"),
        ({"signature": {**SPEC["signature"], "dims": ["rows"]}}, "the signature's dims"),
        ({"signature": {**SPEC["signature"], "outputs": []}}, "without outputs"),
        ({"signature": {**SPEC["signature"], "outputs": [["x", "T", ["rows"]]]}}, "same name"),
        ({"signature": {**SPEC["signature"], "inputs": [["x", "T", ["n"]]]}}, "not a dim"),
        ({"signature": {**SPEC["signature"], "inputs": [["x", "T", ["f()"]]]}}, "not among"),
        ({"flops": "rows ** 2"}, "not among"),
        ({"limits": {"elements": 0}}, "limits"),
        ({"salt": 5}, "'salt' must be a string"),
    ],
)
def test_a_malformed_spec_is_refused(change, message):
    with pytest.raises(SpecError, match=message):
        parse_spec({**SPEC, "reference": "reference.py", **change})


def test_what_is_no_json_is_refused(tmp_path):
    (tmp_path / "spec.json").write_text("{")
    with pytest.raises(SpecError, match=r"spec\.json"):
        read_spec(tmp_path / "spec.json")


# shapes


@pytest.mark.parametrize(
    ("expression", "value"),
    [("rows", 6), ("rows*cols", 42), ("2 * (rows + 1) // 3", 4), ("cols - rows", 1), ("0", 0)],
)
def test_expressions(expression, value):
    assert shapes.evaluate(expression, {"rows": 6, "cols": 7}) == value


@pytest.mark.parametrize(
    "expression", ["rows ** 9", "__import__('os')", "rows.x", "1.5", "rows if 1 else 2", "", "a b"]
)
def test_what_is_no_expression_is_refused(expression):
    with pytest.raises(shapes.ShapeError):
        shapes.names(expression)


@pytest.mark.parametrize("expression", ["1 // rows", "rows - 1", "depth"])
def test_expressions_without_a_size_are_refused(expression):
    with pytest.raises(shapes.ShapeError):
        shapes.evaluate(expression, {"rows": 0})


# seeds


def test_every_part_of_a_seed_counts():
    def seed(salt="s", artifact="a", gate="g", stage="t", config="c", round_=0):
        return Seeds(salt, artifact, gate).bytes(stage, config, round_)

    others = [
        seed(salt="x"), seed(artifact="x"), seed(gate="x"), seed(stage="x"), seed(config="x"),
        seed(round_=1), seed(salt="sa", artifact=""),
    ]  # fmt: skip
    assert len({seed(), *others}) == 8
    assert seed() == seed()


def test_parts_do_not_run_into_each_other():
    assert derive("ab", "c") != derive("a", "bc")
    assert derive("1") != derive(1)


@given(st.integers(1, 1 << 40), st.text(max_size=5))
def test_a_stream_stays_within_its_bounds(bound, key):
    stream = Stream(key)
    assert all(0 <= stream.below(bound) < bound for _ in range(20))
    assert all(1 <= stream.spread(1, bound) <= bound for _ in range(20))
    assert Stream(key).below(bound) == Stream(key).below(bound)


def test_a_stream_is_uniform():
    stream = Stream("key")
    counts = [0] * 5
    for _ in range(5000):
        counts[stream.below(5)] += 1
    assert all(850 < found < 1150 for found in counts)


# tolerance


def over(got, expected, dtype="f32", bound=F32):
    expected = torch.as_tensor(expected, dtype=torch.float64)
    got = torch.as_tensor(got, dtype=torch.float64).to(torch_dtype(dtype))
    allowed = tolerance.allowance(expected, dtype, bound)
    return float(tolerance.excess(got, expected, dtype, allowed).max())


@settings(deadline=None)
@given(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20),
    st.sampled_from(["f32", "f16", "bf16", "f64"]),
)
def test_rounding_to_the_dtype_is_always_within_tolerance(values, dtype):
    assert over(values, values, dtype, BOUNDS[dtype]) <= 1.0


@settings(deadline=None)
@given(
    st.lists(st.floats(0.1, 1e6), min_size=1, max_size=20),
    st.sampled_from(["f32", "f16", "bf16", "f64"]),
)
def test_five_tolerances_off_is_always_too_far(values, dtype):
    bound = BOUNDS[dtype]
    wrong = [values[0] * (1 + 5 * bound.rtol) + 5 * bound.atol * max(values), *values[1:]]
    limit = torch.finfo(torch_dtype(dtype)).max
    if wrong[0] < limit / 2:
        assert over(wrong, values, dtype, bound) > 1.0


@pytest.mark.parametrize(
    ("got", "expected", "right"),
    [
        (math.nan, math.nan, True),
        (math.inf, math.inf, True),
        (-math.inf, -math.inf, True),
        (math.nan, 1.0, False),
        (1.0, math.nan, False),
        (math.inf, -math.inf, False),
        (math.inf, math.nan, False),
        (math.nan, math.inf, False),
        (math.inf, 1e30, False),
        (math.inf, 1e39, True),  # more than float32 holds
        (-math.inf, 1e39, False),
        (3e38, 1e39, False),
    ],
)
def test_non_finite_values_match_only_their_own_kind(got, expected, right):
    assert (over([got, 1.0], [expected, 1.0]) <= 1.0) is right


def test_half_precision_may_overflow_by_rounding():
    assert over([math.inf], [65515.0], "f16", BOUNDS["f16"]) == 0.0
    assert over([math.inf], [60000.0], "f16", BOUNDS["f16"]) == math.inf


def test_tiny_outputs_are_not_passed_by_a_constant():
    expected = torch.softmax(torch.randn(131072, dtype=torch.float64), 0)
    assert over(torch.full((131072,), 1 / 131072), expected) > 100


def test_cancellation_in_a_large_product_is_forgiven():
    expected = torch.tensor([1000.0, -1000.0, 1e-3], dtype=torch.float64)
    assert over(expected + torch.tensor([0, 0, 1e-4]), expected) <= 1.0


def test_flushed_denormals_are_right_where_hardware_flushes_them():
    assert over([0.0, 0.0], [1e-39, -1e-39]) <= 1.0
    assert over([0.0], [5e-5], "f16", BOUNDS["f16"]) > 1.0


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_what_a_sum_with_one_loses_is_no_error_where_nothing_is_larger(dtype):
    slope = math.exp(-83.0)  # of a sigmoid, which doubles cannot tell from 1 there
    assert over([slope], [0.0], dtype, BOUNDS[dtype]) <= 1.0
    assert over([0.0], [slope], dtype, BOUNDS[dtype]) <= 1.0
    assert over([0.0], [1e-29], dtype, BOUNDS[dtype]) > 1.0
    assert over([0.0], [slope], "f64", BOUNDS["f64"]) > 1.0


@pytest.mark.parametrize(
    ("error", "expected"), [(0.0, 1.0), (0.1, 1.0), (1.0, 4.0), (9.0, 16.0), (math.inf, 1.0)]
)
def test_the_baseline_widens_the_tolerance_within_limits(error, expected):
    assert tolerance.slack(error) == expected


@pytest.mark.parametrize("shape", [(), (7,), (2, 3), (4, 1, 5)])
def test_the_position_of_an_element_is_what_pytorch_says(shape):
    for flat in range(math.prod(shape)):
        index = torch.unravel_index(torch.tensor(flat), shape)
        assert tolerance.position(flat, shape) == tuple(int(i) for i in index)


def test_integers_are_exact():
    got = torch.tensor([1, 2, 3], dtype=torch.int32)
    expected = torch.tensor([1, 2, 4])
    assert tolerance.mismatches(got, expected).tolist() == [0.0, 0.0, math.inf]


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (torch.tensor([3 + (5 << 32), 3]), torch.tensor([3, 3], dtype=torch.int32)),
        (torch.tensor([7, 1], dtype=torch.uint8), torch.tensor([True, True])),
        (torch.tensor([2, 1], dtype=torch.int32), torch.tensor([False, True])),
        (torch.tensor([256, 1], dtype=torch.int16), torch.tensor([0, 1], dtype=torch.uint8)),
        (torch.tensor([-1, 1], dtype=torch.int8), torch.tensor([255, 1])),
    ],
)
def test_no_integer_is_cut_to_the_dtype_of_what_is_expected(got, expected):
    """A reference may return fewer bits than are declared, or truth values."""
    assert tolerance.mismatches(got, expected).tolist() == [math.inf, 0.0]
    assert comparison.different(got, expected).tolist() == [math.inf, 0.0]
    assert comparison.any_different(got[None], expected[None]).tolist() == [math.inf]
    assert comparison.any_different(got[None, 1:], expected[None, 1:]).tolist() == [0.0]


@pytest.mark.parametrize("name", [name for name in DTYPES if name not in ONLY_GIVEN])
def test_poison_is_seen_in_every_dtype_and_nothing_else_is(name):
    bits = getattr(torch, DTYPES[name].bits_name)
    poisoned = torch.full((4,), DTYPES[name].poison, dtype=bits)
    poisoned[2:] = 1
    expected = torch.ones(4, dtype=torch.float64 if name in BOUNDS else torch.int64)

    mask = tolerance.unwritten(poisoned.view(torch_dtype(name)), expected, name)
    if name != "bool":  # any non-zero byte of a bool reads as true, so poison may be right
        assert mask.tolist() == [True, True, False, False]


def test_an_integer_that_happens_to_be_the_poison_is_written():
    got = torch.full((2,), DTYPES["i8"].poison, dtype=torch.int8)
    expected = torch.tensor([DTYPES["i8"].poison, 5])
    assert tolerance.unwritten(got, expected, "i8").tolist() == [False, True]


@pytest.mark.parametrize("change", [{"f31": {}}, {"f32": {"tol": 1}}, {"f32": {"atol": math.inf}}])
def test_a_tolerance_that_means_nothing_is_refused(change):
    with pytest.raises(ValueError, match="invalid tolerance"):
        bounds(change)
    assert bounds({"f32": {"atol": 1, "rtol": 2}})["f32"] == Bound(1, 2)


# distributions and the oracle


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_a_distribution_keeps_shape_dtype_integers_and_finiteness(name, dtype):
    inputs = {"x": torch.randn(5, 7).to(dtype), "index": torch.arange(5)}
    made = distributions.apply(name, inputs, torch.Generator().manual_seed(1))

    assert (made["x"].shape, made["x"].dtype) == ((5, 7), dtype)
    assert torch.equal(made["index"], inputs["index"])
    assert torch.isfinite(made["x"]).all()
    assert torch.equal(made["x"], inputs["x"]) is (name == "default")


def test_distributions_are_what_they_are_called():
    x = torch.randn(64, 64)

    def made(name):
        return distributions.apply(name, {"x": x}, torch.Generator().manual_seed(1))["x"]

    assert (made("positive") >= 0).all()
    assert (made("negative") <= 0).all()
    assert not made("zeros").any()
    assert made("constant").unique().numel() == 1
    assert made("scaled_up").abs().mean() > 50 * x.abs().mean()
    assert made("scaled_down").abs().mean() < x.abs().mean() / 50
    assert 0 < (made("spikes") != x).sum() < 100
    assert (made("denormal").abs() < torch.finfo(torch.float32).tiny).all()
    assert made("denormal").any()


def test_an_ill_conditioned_result_may_move_with_its_inputs(tmp_path):
    (tmp_path / "reference.py").write_text(
        REFERENCE.replace("torch.softmax(x * scale, dim=-1)", "(x - 1) * 1e6")
    )
    spec = parse_spec(write_spec(tmp_path, (tmp_path / "reference.py").read_text()))
    oracle = Oracle(spec.reference, spec.signature)
    config = spec.configs[0]
    inputs = {"x": torch.full((8, 64), 1.0)}
    moved = oracle.sensitivity(config, inputs, oracle.expected(config, inputs))

    assert moved["y"].min() == pytest.approx(1e6 * torch.finfo(torch.float32).eps, rel=0.01)


# plausibility


@pytest.mark.parametrize(("online", "present"), [(1, 64), (64, 64)])
def test_processors_that_were_switched_off_count(monkeypatch, online, present):
    monkeypatch.setattr("os.cpu_count", lambda: online)
    monkeypatch.setattr("os.sysconf", {"SC_NPROCESSORS_CONF": present}.__getitem__)

    assert plausibility.device("cpu").flops_per_second == 64 * 2e12


def test_plausibility_counts_what_must_be_written_and_computed(tmp_path):
    signature = parse_spec(write_spec(tmp_path)).signature
    model = plausibility.Device(bytes_per_second=1e9, flops_per_second=1e9)
    config = Config("c", {"rows": 10, "cols": 100}, "f16", {})

    assert plausibility.traffic(signature, config) == 4000
    assert plausibility.floor_ns(signature, "0", config, model) == pytest.approx(2000)
    assert plausibility.floor_ns(signature, "5 * rows * cols", config, model) == pytest.approx(5000)


# verdict.json


def test_a_verdict_is_canonical():
    made = verdict.Verdict("perf", "PASS", cases=[{"b": 1, "a": "é"}], extra={"x": 1})
    assert made.to_json() == (
        b'{"cases":[{"a":"\xc3\xa9","b":1}],"detail":"","gate":"perf","reason":"","schema":1,'
        b'"summary":"","verdict":"PASS","x":1}\n'
    )


@pytest.mark.parametrize(("outcome", "reason"), [("PASS", "CRASH"), ("FAIL", ""), ("OK", "")])
def test_a_verdict_that_contradicts_itself_is_refused(outcome, reason):
    with pytest.raises(ValueError, match=outcome):
        verdict.Verdict("perf", outcome, reason)


@pytest.mark.parametrize(
    ("value", "shown"), [(1 / 3, 0.333333), (math.nan, "nan"), (-math.inf, "-inf"), (1e9, 1e9)]
)
def test_numbers_are_shown_to_six_digits(value, shown):
    assert verdict.number(value) == shown


def test_kabuild_and_the_judge_agree_on_the_format():
    """The skipped verdict is kabuild's own; all others are the judge's."""
    ours = GateVerdict.skipped("perf", "compile: FAIL")
    theirs = verdict.Verdict("perf", "SKIPPED", Reason.EARLIER_GATE.value, "compile: FAIL")

    assert ours.to_json() == theirs.to_json()
    assert GateVerdict.from_json(theirs.to_json()) == ours
    assert {one.value for one in Outcome} == set(verdict.OUTCOMES)


def test_half_a_character_of_a_candidate_stops_no_verdict(tmp_path):
    verdict.write_verdict(verdict.Verdict("compile", "FAIL", "CRASH", "\udc80"), tmp_path)
    assert verdict.read_verdict(tmp_path / "verdict.json", "compile")["summary"] == "\udc80"
