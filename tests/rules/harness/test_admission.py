"""Admission: for each reason a toy task that is rejected for it, and a twin that is not."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from base.program import CandidateFault
from judging_doubles import Doubles, write_spec
from terms.reasons import Reason

from admission import gate as admission  # isort: skip
from admission import exactness, own_kernels  # isort: skip
from base.spec import SpecError, parse_spec  # isort: skip
from admission.subject import Subject  # isort: skip

REFERENCE = """
import torch

def inputs(config, generator):
    rows, cols, dtype = config["rows"], config["cols"], config["dtype"]
    x = torch.randn(rows, cols, generator=generator)
    w = torch.rand(cols, generator=generator)
    return {"x": X.to(dtype), "w": W.to(dtype)}

def reference(x, w, **_):
    return {"y": Y}
"""
SIGNATURE = {
    "inputs": [["x", "T", ["rows", "cols"]], ["w", "T", ["cols"]]],
    "outputs": [["y", "T", ["rows", "cols"]]],
    "scalars": [],
    "dims": ["rows", "cols"],
}
ALONE = {**SIGNATURE, "inputs": [["x", "T", ["rows", "cols"]]]}
BRIEF = "Multiplies every column of the matrix x by its weight w, and y is contiguous, as x is."
LOOSE = {"f32": {"atol": 1e-3, "rtol": 1e-3}}
CHECK = """
def check(inputs, outputs, expected):
    y, wanted = outputs["y"].double().flatten(), expected["y"].flatten()
    close = torch.isclose(y, wanted, rtol=1e-4, atol=1e-6)
    return None if PASSES else "wrong"
"""


@dataclass(frozen=True)
class Toy:
    """A task: what differs from y = x * w with an honest baseline and expert."""

    y: str = "x * w"
    x: str = "x"
    w: str = "(w + 0.5)"
    more: str = ""
    policy: dict[str, Any] = field(default_factory=dict)
    spec: dict[str, Any] = field(default_factory=dict)
    baseline: Any = None
    expert: Any = None

    def source(self):
        text = REFERENCE.replace("X", self.x).replace("W", self.w).replace("Y", self.y)
        if self.spec.get("signature") is ALONE:
            text = text.replace(', "w": ' + self.w + ".to(dtype)", "").replace("(x, w,", "(x,")
        return text + self.more


def honest(source):
    """The kernel that computes the reference in float32 and rounds once."""
    names: dict[str, Any] = {}
    exec(source, names)

    def run(y, rows, cols, **given):
        single = {name: tensor.float() for name, tensor in given.items()}
        y.copy_(names["reference"](**single, rows=rows, cols=cols)["y"])

    return run


def judge(folder, toy, samples=8):
    source = toy.source()
    spec = parse_spec(
        write_spec(
            folder,
            source,
            gate="admission",
            **{
                "signature": SIGNATURE,
                "space": {"dims": {"rows": [1, 64], "cols": [1, 512]}, "dtypes": ["f32"]},
                "configs": [config(8, 64), config(3, 257)],
                "policy": {"samples": samples, "brief": BRIEF, **toy.policy},
                **toy.spec,
            },
        )
    )
    kernel = honest(source)
    launcher = Doubles({"baseline": toy.baseline or kernel, "candidate": toy.expert or kernel})
    verdict = admission.run(spec, launcher)
    assert launcher.alive == 0, "a runner was left behind"
    return verdict


def config(rows, cols):
    name = f"f32 rows={rows} cols={cols}"
    return {"name": name, "dims": {"rows": rows, "cols": cols}, "dtype": "f32", "scalars": {}}


def fails_beyond_the_visible(x, w, y, **_):
    y.copy_(x * w)
    if tuple(x.shape) not in {(8, 64), (3, 257)}:
        y.zero_()


def fails_on_the_visible(x, w, y, **_):
    y.copy_(x * w if tuple(x.shape) != (3, 257) else x)


def crashes(**_):
    raise CandidateFault(Reason.CRASH, "it died")


def noisy(x, w, y, **_):
    y.copy_(x * w * (1 + 1e-6 * torch.rand(())))


REJECTED = {
    "all_zero": ("RANGE", Toy(y="0 * x * w")),
    "tiny": ("RANGE", Toy(y="1e-4 * x * w")),
    "seeds_do_not_matter": (
        "SEED_INSENSITIVE",
        Toy(y="torch.arange(float(x.numel())).reshape(x.shape).to(x) + 1e-4 * x * w"),
    ),
    "columns_do_not_matter": (
        "AXIS_CONSTANT",
        Toy(y="(x * w).sum(-1, keepdim=True).expand_as(x).clone()"),
    ),
    "an_input_is_not_read": ("INPUT_IGNORED", Toy(y="2 * x + 0 * w")),
    "a_fixed_input": ("SEEDS_IGNORED", Toy(w="torch.linspace(0, 1, cols)")),
    "a_random_input": ("SEEDS_IGNORED", Toy(w="torch.rand(cols)")),
    "sums_in_any_order": ("SEEDS_IGNORED", Toy(x="x.scatter_add(0, (x > 0).long(), x)")),
    "sums_of_rows": ("SEEDS_IGNORED", Toy(x="x.index_add(0, (0 * x[:, 0]).long(), x)")),
    "sums_by_indices": (
        "SEEDS_IGNORED",
        Toy(w="(w.index_put(((9 * w).long(),), w, accumulate=True) + 0.5)"),
    ),
    "the_last_one_stays": ("SEEDS_IGNORED", Toy(w="w.scatter(0, (9 * w).long(), w + 1)")),
    "the_last_of_a_slice_stays": (
        "SEEDS_IGNORED",
        Toy(w="w.index_put(((9 * w).long(),), w + 1)"),
    ),
    "infinite": ("NOT_FINITE", Toy(y="x * w + float('inf')")),
    "the_result_is_float32": ("ORACLE_NOT_FLOAT64", Toy(y="(x * w).float()")),
    "float32_at_first": ("ORACLE_NOT_FLOAT64", Toy(y="x.float().double().sin() * w.float()")),
    "float32_in_between": ("ORACLE_NOT_FLOAT64", Toy(y="(x * w).float().double() * 2 + w")),
    "float64_is_refused": (
        "ORACLE_NOT_FLOAT64",
        Toy(y="x * w if x.dtype == torch.float32 else x @ w.float()"),
    ),
    "it_raises": ("REFERENCE_FAILS", Toy(y="x.no_such_thing()")),
    "another_shape": ("REFERENCE_FAILS", Toy(y="(x * w).T")),
    "the_truth_is_wrong": ("ORACLE_REJECTED", Toy(more=CHECK.replace("PASSES", "False"))),
    "anything_is_right": ("TOO_TOLERANT", Toy(more=CHECK.replace("PASSES", "True"))),
    "the_end_is_not_compared": (
        "TOO_TOLERANT",
        Toy(more=CHECK.replace("PASSES", "close[:-len(close) // 50].all()")),
    ),
    "half_precision_will_do": ("TOO_TOLERANT", Toy(policy={"tolerance": LOOSE})),
    "a_sloppy_baseline": ("TOO_TOLERANT", Toy(baseline=lambda x, w, y, **_: y.copy_(
        (x * w).half()), policy={"tolerance": {"f32": {"atol": 1e-4, "rtol": 2e-4}}},
    )),
    "a_copy": ("TOO_TOLERANT", Toy(y="x", spec={"signature": ALONE})),
    "noise": ("BASELINE_NONDETERMINISTIC", Toy(baseline=noisy)),
    "the_baseline_fails": ("SPACE_NOT_COVERED", Toy(baseline=fails_on_the_visible)),
    "the_baseline_fails_unseen": ("SPACE_NOT_COVERED", Toy(baseline=fails_beyond_the_visible)),
    "the_expert_fails_unseen": ("SPACE_NOT_COVERED", Toy(expert=fails_beyond_the_visible)),
    "the_expert_crashes": ("SPACE_NOT_COVERED", Toy(expert=crashes)),
    "no_brief": ("BRIEF_TOO_SHORT", Toy(policy={"brief": "y = x * w for all rows and columns."})),
    "a_config_beyond": ("CONFIG_INVALID", Toy(policy={"declared": [config(65, 64)]})),
    "a_config_below_nothing": (
        "CONFIG_INVALID",
        Toy(spec={"signature": {**SIGNATURE, "outputs": [["y", "T", ["rows - 5", "cols"]]]}}),
    ),
    "a_config_of_nothing": (
        "CONFIG_INVALID",
        Toy(spec={"signature": {**SIGNATURE, "outputs": [["y", "T", ["rows - 3", "cols"]]]}}),
    ),
}  # fmt: skip
ADMITTED = {
    "plain": Toy(),
    "columns_are_alike_in_small_configs": Toy(
        y="(x * w)[:, :: 128].repeat_interleave(128, -1)[:, : x.shape[1]]",
        spec={
            "configs": [config(256, 256)],
            "space": {"dims": {"rows": [1, 256], "cols": [1, 256]}, "dtypes": ["f32"]},
        },
    ),
    "sums_of_whole_numbers": Toy(x="x.scatter_add(0, (0 * x).long(), x.round())"),
    "the_largest_in_any_order": Toy(x="(x.scatter_reduce(0, (0 * x).long(), x, 'amax') + x.abs())"),
    "each_place_once": Toy(w="(w + 0.5).index_put((w.argsort(),), w + 1, accumulate=True)"),
    "one_value_many_times": Toy(w="(w.index_put(((0 * w).long(),), w.mean()) + 0.5)"),
    "small_but_not_tiny": Toy(y="1e-2 * x * w"),
    "an_offset": Toy(y="torch.arange(float(x.numel())).reshape(x.shape).to(x) % 7 + x * w"),
    "running_sums": Toy(y="(x * w).cumsum(-1)"),
    "an_input_that_hardly_matters": Toy(y="2 * x + 0.1 * w"),
    "another_range": Toy(w="(3 * w - 1)"),
    "one_infinity": Toy(y="torch.where(x > 2, float('inf'), x * w)"),
    "selection_among_ties": Toy(x="(4 * x).round()", y="x.sort(-1).values * w"),
    "a_true_check": Toy(more=CHECK.replace("PASSES", "close.all()")),
    "a_strict_tolerance": Toy(policy={"tolerance": {"f32": {"atol": 1e-6, "rtol": 1e-6}}}),
    "declared_noise": Toy(baseline=noisy, policy={"deterministic": False}),
    "no_expert": Toy(expert=crashes, policy={"expert": False}),
    "a_wide_config": Toy(policy={"declared": [config(64, 512)]}),
    "another_computation": Toy(y="x * 2.5", spec={"signature": ALONE}),
}


@pytest.mark.parametrize("name", REJECTED)
def test_a_degenerate_task_is_rejected_for_its_reason(tmp_path, name):
    reason, toy = REJECTED[name]

    verdict = judge(tmp_path, toy)

    assert (verdict.outcome, verdict.reason) == ("REJECTED", reason), verdict.detail
    assert verdict.summary
    first = next(case for case in verdict.cases if case["verdict"] == "REJECTED")
    assert first["reason"] == reason
    assert first["detail"] in verdict.detail


@pytest.mark.parametrize("name", ADMITTED)
def test_its_twin_is_admitted(tmp_path, name):
    verdict = judge(tmp_path, ADMITTED[name])

    assert verdict.outcome == "PASS", verdict.detail
    assert {case["verdict"] for case in verdict.cases} == {"PASS"}


@pytest.mark.parametrize(
    ("name", "evidence"),
    [
        ("anything_is_right", "zero as 'y' passes for f32 rows=8 cols=64"),
        ("anything_is_right", "its mean as 'y' passes for f32 rows=3 cols=257"),
        ("anything_is_right", "another call's result as 'y' passes"),
        ("the_end_is_not_compared", "99 % and zeros as 'y' passes"),
        ("the_end_is_not_compared", "99 % and an earlier call's rest as 'y' passes"),
        ("half_precision_will_do", "a half-precision 'y' passes"),
        ("half_precision_will_do", "a computation from half-precision inputs passes"),
        ("a_copy", "input 'x' as 'y' passes"),
        ("an_input_is_not_read", "input 'w'"),
        ("columns_do_not_matter", "along axis 1"),
        ("the_baseline_fails", "the baseline fails on f32 rows=3 cols=257"),
        ("the_expert_fails_unseen", "the expert fails on f32 rows="),
        ("a_config_beyond", "config f32 rows=65 cols=64 is outside"),
    ],
)
def test_the_evidence_is_named(tmp_path, name, evidence):
    assert evidence in judge(tmp_path, REJECTED[name][1]).detail


def test_a_comparison_that_only_forgets_the_end_lets_nothing_else_pass(tmp_path):
    detail = judge(tmp_path, REJECTED["the_end_is_not_compared"][1]).detail

    assert "zero as 'y'" not in detail
    assert "half-precision" not in detail


def test_kernels_run_only_for_an_oracle_that_is_sound(tmp_path):
    verdict = judge(tmp_path, Toy(y="0 * x * w", baseline=crashes))

    found = {case["check"]: case["verdict"] for case in verdict.cases}
    assert found["RANGE"] == "REJECTED"
    assert found["SPACE_NOT_COVERED"] == found["TOO_TOLERANT"] == "SKIPPED"


def test_the_number_of_samples_is_the_policys(tmp_path):
    assert "20 sampled configs" in judge(tmp_path, Toy(), samples=20).summary
    with pytest.raises(SpecError, match="at least one sample"):
        judge(tmp_path, Toy(), samples=0)


def spec_of(folder):
    """The toy task, with one visible config."""
    space = {"dims": {"rows": [1, 64], "cols": [1, 512]}, "dtypes": ["f32"]}
    changes = {"signature": SIGNATURE, "space": space, "configs": [config(8, 64)]}
    return parse_spec(write_spec(folder, Toy().source(), **changes))


def quotient_without_nan(x, w, y, **_):
    quotient = x.double() / w.double()
    y.copy_(torch.where(quotient.isnan(), 0.0, quotient))


def test_samples_without_an_answer_say_nothing_of_the_kernels(tmp_path):
    """Where half of the inputs are zeros, some quotients are 0 / 0."""
    task = Toy(y="x / w", baseline=quotient_without_nan, expert=quotient_without_nan)
    distributions = {item.distribution for item in own_kernels.draw(spec_of(tmp_path), 40)}

    assert "sparse" in distributions
    assert judge(tmp_path, task, samples=40).outcome == "PASS"


def test_few_samples_are_the_telling_ones(tmp_path):
    spec = spec_of(tmp_path)
    few, many = own_kernels.draw(spec, 4), own_kernels.draw(spec, 100)

    def areas(drawn):
        return [d.config.dims["rows"] * d.config.dims["cols"] for d in drawn]

    assert few == many[:4]
    assert [d.distribution for d in few] == ["scaled_up"] * 2 + ["spikes"] * 2
    for index in (0, 2):
        group = [d for d in many if d.distribution == few[index].distribution]
        assert areas(few)[index] == min(areas(group))
        longest = [max(d.config.dims.values()) for d in group if d != few[index]]
        assert max(few[index + 1].config.dims.values()) == max(longest)


@pytest.mark.parametrize(
    ("y", "found"),
    [
        ("(3 * x * w).round()", ""),  # any precision holds whole numbers
        ("torch.exp(x * w)", ""),
        ("(x * w).sort(-1).values", ""),
        ("torch.relu(x) + w", ""),
        ("torch.exp(x.float() * w.float()).double()", "ignores digits beyond"),
        ("torch.exp(x * w).float().double() + w", "steps of float32"),
        ("torch.einsum('rc,c->rc', x, w).float()", "is float32 for float64"),
    ],
)
def test_where_an_oracle_leaves_double_precision(tmp_path, y, found):
    spec = write_spec(
        tmp_path,
        Toy(y=y).source(),
        signature=SIGNATURE,
        space={"dims": {"rows": [1, 64], "cols": [1, 512]}, "dtypes": ["f32"]},
        configs=[config(8, 64)],
    )

    said = exactness.not_float64(Subject(parse_spec(spec)), set())

    assert (found in said) if found else not said
