"""Scalars that a task declares ranges of: other values in hidden configs and at the edges."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from base.program import Argument, Config, Signature
from base.sampler import Ground, draw
from base.scalar_ranges import drawn
from base.seeds import Stream
from base.spec import Space, config_name, parse_spec
from correctness.edges import edges
from hypothesis import given
from hypothesis import strategies as st
from judging_doubles import SPEC, Doubles, softmax, write_spec

from correctness import gate as correctness  # isort: skip
from unseen import gate as unseen  # isort: skip

RANGES = {"scale": (0.25, 4.0)}
SIGNATURE = Signature(
    (Argument("x", "T", ("rows", "cols")),),
    (Argument("y", "T", ("rows", "cols")),),
    (("scale", 1.0), ("eps", 1e-5)),
    ("rows", "cols"),
)
DIMS = {"rows": 16, "cols": 64}
VISIBLE = Config(config_name("f32", DIMS), DIMS, "f32", {"scale": 1.0, "eps": 1e-5})
SPACE = Space({"rows": (1, 4096), "cols": (1, 4096)}, ("f32", "f16"))
GROUND = Ground(SIGNATURE, SPACE, 65536, (VISIBLE,))
VARIED = replace(GROUND, space=replace(SPACE, scalars=RANGES))


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.text(max_size=4))
def test_a_drawn_scalar_lies_between_its_bounds(one, other, salt):
    low, high = min(one, other), max(one, other)
    if low < high:
        value = drawn({"a": (low, high)}, Stream(salt))["a"]

        assert np.float32(low) <= value <= np.float32(high)
        assert value == np.float32(value), "a kernel gets another value than the reference"
        assert value in {np.float32(at) for at in (low, high, float(f"{value:.3g}"))}


def test_a_wide_range_has_all_sizes():
    stream = Stream("sizes")
    values = [drawn({"eps": (1e-8, 1e-2)}, stream)["eps"] for _ in range(200)]

    assert {f"{value:e}"[-3:] for value in values} >= {"-08", "-07", "-06", "-05", "-04", "-03"}


def test_an_integer_stays_one():
    values = {drawn({"index": (-3, -1)}, Stream("n", n))["index"] for n in range(40)}

    assert values == {-3, -2, -1}
    assert all(isinstance(value, int) for value in values)


@pytest.mark.parametrize(
    "configs_of",
    [
        lambda ground: [one.config for one in draw(ground, "salt").configs],
        lambda ground: edges(ground, "salt", 6),
    ],
)
def test_all_drawn_configs_have_values_of_their_own(configs_of):
    configs = configs_of(VARIED)
    scales = [config.scalars["scale"] for config in configs]

    assert len(set(scales)) > 4
    assert all(0.25 <= scale <= 4.0 for scale in scales)
    assert all(scale == np.float32(scale) for scale in scales)
    assert all(config.scalars["eps"] == 1e-5 for config in configs)
    assert all(c.name.endswith(f" scale={c.scalars['scale']:.6g}") for c in configs)
    assert max(len(config.name) for config in configs) < 40
    assert configs == configs_of(VARIED)
    assert all(config.scalars["scale"] == 1.0 for config in configs_of(GROUND))


def with_one_scale(x, y, **_):
    softmax(x, y, scale=1.0)


@pytest.mark.parametrize("gate", [correctness, unseen])
def test_a_kernel_with_the_usual_value_built_in_fails(tmp_path, gate):
    space = {**SPEC["space"], "scalars": {"scale": [0.25, 4.0]}}
    name = gate.__name__.partition(".")[0]
    configs = [{**config, "scalars": {}} for config in SPEC["configs"]]

    def judged(candidate, **changes):
        spec = write_spec(tmp_path, gate=name, configs=configs, **changes)
        launcher = Doubles({"candidate": candidate, "baseline": softmax})
        return gate.run(parse_spec(spec), launcher)

    assert judged(with_one_scale).outcome == "PASS"
    assert judged(softmax, space=space).outcome == "PASS"
    failed = judged(with_one_scale, space=space)
    assert failed.outcome == "FAIL"
    assert " scale=" in failed.detail
