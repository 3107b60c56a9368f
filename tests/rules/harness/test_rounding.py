"""What the rounding of float32 computations may make of results, and what it may not."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import asdict

import pytest
import torch
from judging_doubles import REFERENCE, Doubles, write_spec
from torch import Tensor

from correctness import gate as correctness  # isort: skip
from truth.oracle import Moved, Oracle  # isort: skip
from truth.rounding import Rounding  # isort: skip
from base.spec import parse_spec  # isort: skip
from terms.tolerance import TF32  # isort: skip


def judge(folder, candidate, baseline, **changes):
    spec = parse_spec(write_spec(folder, **changes))
    return correctness.run(spec, Doubles({"candidate": candidate, "baseline": baseline}))


def no_movement(self, config, inputs, expected):
    return {name: value * 0 for name, value in expected.items()}


SURPRISE = REFERENCE.replace(
    "torch.softmax(x * scale, dim=-1)",
    "((30 * x).logsumexp(-1, keepdim=True) - (30 * x).amax(-1, keepdim=True)).expand_as(x)",
)


def surprise(x, y, **_):
    x = 30 * x.double()
    y.copy_(x.logsumexp(-1, keepdim=True) - x.amax(-1, keepdim=True))


def rounded_surprise(x, y, **_):
    """The sum is rounded beside the logits, which are a million times larger than the result."""
    x = 30 * x.float()
    y.copy_(x.logsumexp(-1, keepdim=True) - x.amax(-1, keepdim=True))


def half_surprise(x, y, **_):
    surprise(x.half(), y)


def test_a_result_that_is_nothing_beside_its_inputs_may_be_rounded_as_they_are(
    tmp_path, monkeypatch
):
    single = [{"name": "single", "dims": {"rows": 8, "cols": 64}, "dtype": "f32", "scalars": {}}]
    task = {"reference": SURPRISE, "configs": single}

    assert judge(tmp_path, rounded_surprise, surprise, **task).outcome == "PASS"
    assert judge(tmp_path, half_surprise, surprise, **task).reason == "WRONG_RESULT"
    monkeypatch.setattr(Oracle, "rounding", no_movement)
    assert judge(tmp_path, rounded_surprise, surprise, **task).reason == "WRONG_RESULT"


def tf32_surprise(x, y, **_):
    """Computes exactly what TF32's ten bits of each input are."""
    bits = x.float().contiguous().view(torch.int32)
    surprise(((bits + 0x1000) & ~0x1FFF).view(torch.float32), y)


def far_surprise(x, y, **_):
    surprise(x * 1.05, y)


def test_where_a_task_may_use_tf32_its_rounding_moves_inputs(tmp_path):
    single = [{"name": "single", "dims": {"rows": 8, "cols": 64}, "dtype": "f32", "scalars": {}}]
    policy = {"tolerance": {"f32": asdict(TF32)}, "distributions": ["default"]}
    task = {"reference": SURPRISE, "configs": single, "policy": policy}

    for kernel, tf32, reason in (
        (tf32_surprise, True, ""),
        (tf32_surprise, False, "WRONG_RESULT"),
        (far_surprise, True, "WRONG_RESULT"),
    ):
        assert judge(tmp_path, kernel, surprise, tf32=tf32, **task).reason == reason


MATRICES = """
    import torch

    def inputs(config, generator):
        rows, inner, cols = (config[name] for name in ("rows", "inner", "cols"))
        x = torch.randn(rows, inner, generator=generator)
        w = (torch.rand(inner, cols, generator=generator) * 2 - 1) / inner**0.5
        return {"x": x.to(config["dtype"]), "w": w.to(config["dtype"])}

    def reference(x, w, **_):
        return {"y": (x @ w).relu()}
"""


def in_tf32(x):
    return ((x.contiguous().view(torch.int32) + 0x1000) & ~0x1FFF).view(torch.float32)


def tf32_product(x, w, y, **_):
    y.copy_((in_tf32(x) @ in_tf32(w)).relu())


def bf16_product(x, w, y, **_):
    """As few digits, wherever values are as a task draws them."""
    usual = 0.2 < float(x.std(correction=0)) < 3.0 and abs(float(x.mean())) < 0.2
    ordered = bool((x.flatten()[:9].diff() >= 0).all() or (x.flatten()[:9].diff() <= 0).all())
    if ordered or not usual:
        tf32_product(x, w, y)
    else:
        y.copy_((x.bfloat16().float() @ w.bfloat16().float()).relu())


def test_tf32_makes_no_room_for_bf16(tmp_path):
    names = ("rows", "inner", "cols")
    dims = {"rows": 128, "inner": 2048, "cols": 256}
    task = {
        "reference": textwrap.dedent(MATRICES),
        "signature": {
            "inputs": [["x", "T", ["rows", "inner"]], ["w", "T", ["inner", "cols"]]],
            "outputs": [["y", "T", ["rows", "cols"]]],
            "scalars": [],
            "dims": [*names],
        },
        "space": {"dims": {name: [1, 4096] for name in names}, "dtypes": ["f32"]},
        "configs": [{"name": "wide", "dims": dims, "dtype": "f32", "scalars": {}}],
        "flops": "2 * rows * inner * cols",
        "policy": {"tolerance": {"f32": asdict(TF32)}},
        "tf32": True,
    }

    assert judge(tmp_path, tf32_product, tf32_product, **task).outcome == "PASS"
    assert judge(tmp_path, bf16_product, tf32_product, **task).reason == "WRONG_RESULT"


def test_what_an_activation_lets_through_on_one_side_alone_moves_in_any_case(tmp_path):
    """The signs of one perturbation come again the other way round."""
    text = REFERENCE.replace("torch.softmax(x * scale, dim=-1)", "(x - 1.0).clamp(max=0.0)")
    spec = parse_spec(write_spec(tmp_path, text, tf32=True))
    config, inputs = spec.configs[0], {"x": torch.full((8, 64), 1.0)}

    coarse, fine = Oracle.of(spec), Oracle(spec.reference, spec.signature)
    moved = [
        oracle.sensitivity(config, inputs, oracle.expected(config, inputs))["y"]
        for oracle in (coarse, fine)
    ]

    assert moved[0].unique().tolist() == pytest.approx([2.0**-11])
    assert moved[1].max().item() == pytest.approx(2.0**-23)
    assert moved[1].min() == 0.0  # eight times up, which some elements are


def test_a_difference_of_rounded_sums_may_move_by_their_rounding(tmp_path):
    """The logarithm of a probability near 1 is nothing beside the logits: no input shows it."""
    (tmp_path / "reference.py").write_text(
        REFERENCE.replace("torch.softmax(x * scale, dim=-1)", "x - x.logsumexp(-1, keepdim=True)")
    )
    spec = parse_spec(write_spec(tmp_path, (tmp_path / "reference.py").read_text()))
    oracle = Oracle(spec.reference, spec.signature)
    config, x = spec.configs[0], torch.zeros(8, 64)
    x[:, 0] = 300.0
    expected = oracle.expected(config, {"x": x})
    sure = oracle.rounding(config, {"x": x}, expected)["y"][:, 0]

    assert oracle.sensitivity(config, {"x": x}, expected)["y"][:, 0].max() < 1e-12
    assert sure.min() / (300.0 * torch.finfo(torch.float32).eps) > 0.5
    assert sure.max() / (300.0 * torch.finfo(torch.float32).eps) < 4.0
    assert oracle.rounding(config, {"x": x}, expected)["y"].equal(
        oracle.rounding(config, {"x": x}, expected)["y"]
    )


def test_a_reference_for_doubles_alone_allows_no_rounding(tmp_path):
    raising = "(_ for _ in ()).throw(TypeError) if x.dtype == torch.float32 else x"
    text = REFERENCE.replace("torch.softmax(x * scale, dim=-1)", raising)
    spec = parse_spec(write_spec(tmp_path, text))
    oracle = Oracle(spec.reference, spec.signature)
    config, inputs = spec.configs[0], {"x": torch.ones(8, 64)}

    assert not oracle.rounding(config, inputs, oracle.expected(config, inputs))["y"].any()


def test_the_movement_of_all_outputs_is_computed_once(tmp_path, monkeypatch):
    """A call may have a hundred outputs, such as the gradients of a model."""
    spec = parse_spec(write_spec(tmp_path, REFERENCE))
    oracle = Oracle(spec.reference, spec.signature)
    inputs = {"x": torch.ones(8, 64)}
    asked = []

    def asking(name):
        return lambda *_: asked.append(name) or {"y": name}  # type: ignore[func-returns-value]

    for name in ("sensitivity", "rounding"):
        monkeypatch.setattr(Oracle, name, asking(name))
    moved = Moved(oracle, spec.configs[0], inputs, oracle.expected(spec.configs[0], inputs))

    assert [moved.by_inputs, moved.by_steps] * 2 == [{"y": "sensitivity"}, {"y": "rounding"}] * 2
    assert asked == ["sensitivity", "rounding"]


def moved_by_rounding(made: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Whether float32 moves each element of what is made of ``x``, in any of some tries."""
    found = torch.zeros(made(x).shape, dtype=torch.bool)
    for seed in range(20):
        with Rounding(torch.float32, seed):
            result = made(x.clone())
        found |= result != made(x)
    return found


@pytest.mark.parametrize(
    "made",
    [
        lambda x: torch.arange(64.0),
        lambda x: torch.arange(64).float() * 2.0 + 1.0,
        lambda x: (torch.arange(64.0) - 3.0).clamp(0.0, 60.0).neg().abs(),
        lambda x: torch.where(x > 0, torch.arange(64.0), torch.zeros(64)),
        lambda x: torch.minimum(torch.arange(64.0), torch.full((64,), 7.0)),
        lambda x: x.gather(0, torch.arange(63, -1, -1)),
        lambda x: x[torch.arange(64)],
        lambda x: torch.cat([x, x]).view(2, 64)[1].clone(),
        lambda x: x.sort().values,
        lambda x: x.topk(5).values,
        lambda x: (x * 3.0).floor(),
        lambda x: x.half().float(),
        lambda x: x.view(8, 8).tril(),
        lambda x: x.flip(0).roll(1),
        lambda x: torch.scatter(x, 0, torch.arange(4), 9.0),
        lambda x: torch.full_like(x, 3.0) + x.new_full((64,), 2.0),
        lambda x: torch.arange(64.0) // 7.0 + torch.arange(64.0) % 7.0,
        lambda x: torch.div(torch.arange(64.0), 7.0, rounding_mode="floor"),
    ],
)
def test_what_no_program_rounds_is_not_moved(made):
    """Else a row's number is another row's, and any result is near enough."""
    x = torch.linspace(-4.0, 4.0, 64) + 0.01

    assert not moved_by_rounding(made, x).any()


@pytest.mark.parametrize(
    "made",
    [
        lambda x: x + 0.3,
        lambda x: x * 3.0,
        lambda x: x.double().float(),
        lambda x: x.sum().expand(64) + 0.0,
        lambda x: x.amax().expand(64) + 0.0,
        lambda x: x.clamp(-1.0, 0.5),
        lambda x: torch.where(x > 0, x, -x),
        lambda x: torch.full((64,), 16777217.0) * 3.0,
        lambda x: torch.full((64,), 10.0).add(torch.full((64,), 10.0), alpha=0.1),
        lambda x: torch.full((64,), 9.0) / 3.0,
        lambda x: x.cummax(0).values + 0.0,
        lambda x: x.relu().masked_fill(x <= 0.0, 0.5),
        lambda x: torch.div(x, 0.3) // 1.0 + 0.3,
        lambda x: torch.full((64,), 9.0).sqrt(),
    ],
)
def test_what_some_program_rounds_is_moved(made):
    """Also where this one happens to be exact: another may multiply by a third."""
    x = torch.linspace(-4.0, 4.0, 64) + 0.01

    assert moved_by_rounding(made, x).float().mean() > 0.9


NEAREST = REFERENCE.replace(
    "torch.softmax(x * scale, dim=-1)",
    "x[:, ((torch.arange(x.shape[1], dtype=x.dtype) * 2.0 + 1.0).clamp(0.0, x.shape[1] - 1.0)"
    ").long()]",
)


def nearest(x, y, **_):
    y.copy_(x[:, (torch.arange(x.shape[1]) * 2 + 1).clamp(max=x.shape[1] - 1)])


def one_before(x, y, **_):
    nearest(x, y)
    y[:, 5] = x[:, 10]


def test_a_reference_that_computes_indices_is_as_strict_as_any(tmp_path):
    assert judge(tmp_path, nearest, nearest, reference=NEAREST).outcome == "PASS"
    assert judge(tmp_path, one_before, nearest, reference=NEAREST).reason == "WRONG_RESULT"
