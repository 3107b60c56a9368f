"""Unseen and edge configs: inside the space, under the cap, new, and of their class."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from base.program import Argument, Config, Signature
from base.sampler import CLASSES, SHIFTS, Ground, belongs, draw
from base.spec import Space, config_name, largest_tensor
from correctness.edges import edges, reduced
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.testkit.examples import examples

NAMES = ("rows", "cols", "depth")


def ground_of(bounds, visible, elements=65536, dtypes=("f32", "f16")):
    names = NAMES[: len(bounds)]
    shape = tuple(names)
    signature = Signature(
        (Argument("x", "T", shape),), (Argument("y", "T", shape),), (("eps", 1e-5),), names
    )
    space = Space(dict(zip(names, bounds, strict=True)), dtypes)
    configs = []
    for values in visible:
        dims = dict(zip(names, values, strict=True))
        configs.append(Config(config_name("f32", dims), dims, "f32", {}))
    return Ground(signature, space, elements, tuple(configs))


ROOMY = ground_of([(1, 65536), (1, 131072)], [(64, 256), (16, 1000)])


@st.composite
def grounds(draw_from):
    """Spaces of one to three dims, with a visible config in each and a cap above it."""
    bounds, visible = [], []
    for _ in range(draw_from(st.integers(1, 3))):
        low = draw_from(st.integers(0, 70))
        high = low + draw_from(st.sampled_from([0, 1, 5, 100, 4096, 1 << 20]))
        bounds.append((low, high))
        visible.append(draw_from(st.integers(low, min(high, low + 60))))
    count = 1
    for value in visible:
        count *= max(value, 1)
    elements = draw_from(st.integers(count, max(count, 1 << 18)))
    dtypes = draw_from(st.sampled_from([("f32",), ("f32", "f16"), ("f32", "f16", "bf16")]))
    return ground_of(bounds, [visible], elements, dtypes)


@settings(max_examples=examples(50), deadline=None)
@given(grounds(), st.text(max_size=8))
def test_every_drawn_config_is_valid_new_and_of_its_class(ground, salt):
    drawn = draw(ground, salt)

    seen = {(config.dtype, *config.dims.values()) for config in ground.visible}
    for item in drawn.configs:
        config = item.config
        assert ground.space.contains(config.dims)
        assert 0 < largest_tensor(ground.signature, config.dims) <= ground.elements
        assert belongs(item.class_, config.dims, ground)
        assert item.distribution in SHIFTS
        assert config.dtype in ground.space.dtypes
        assert config.scalars == {"eps": 1e-5}
        point = (config.dtype, *config.dims.values())
        assert point not in seen
        seen.add(point)
    found = {item.class_ for item in drawn.configs}
    assert found | set(drawn.missing) == set(CLASSES)


@settings(max_examples=examples(20), deadline=None)
@given(grounds(), st.text(max_size=8))
def test_the_draw_is_a_function_of_its_arguments(ground, salt):
    assert draw(ground, salt) == draw(replace(ground), salt)


@settings(max_examples=examples(50), deadline=None)
@given(st.text(max_size=8))
def test_a_roomy_space_has_all_classes_under_every_salt(salt):
    drawn = draw(ROOMY, salt)

    assert [item.class_ for item in drawn.configs] == list(CLASSES)
    assert drawn.missing == ()
    assert {item.config.dtype for item in drawn.configs} == {"f32", "f16"}
    kinds = [item.distribution for item in drawn.configs]
    assert "default" in kinds
    assert len(set(kinds)) >= len(CLASSES) - 1
    assert {item.distribution for item in draw(ROOMY, salt, cycles=2).configs} == set(SHIFTS)


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(1, 512), st.integers(1, 512), st.integers(1, 512), st.text(max_size=4))
def test_operands_of_different_shapes_all_stay_under_the_cap(m, n, k, salt):
    signature = Signature(
        (Argument("a", "T", ("m", "k")), Argument("b", "T", ("k", "n + 1"))),
        (Argument("c", "f32", ("m", "n")),),
        (),
        ("m", "n", "k"),
    )
    dims = {"m": m, "n": n, "k": k}
    cap = max(m * k, k * (n + 1), m * n)
    space = Space(dict.fromkeys("mnk", (1, 8192)), ("f16",))
    ground = Ground(signature, space, cap, (Config("visible", dims, "f16", {}),))

    for item in draw(ground, salt).configs:
        assert largest_tensor(signature, item.config.dims) <= cap


def test_two_hundred_configs_are_all_different():
    drawn = draw(ROOMY, "salt", cycles=25)

    assert len({item.config.name for item in drawn.configs}) == len(drawn.configs) == 200


@pytest.mark.parametrize(
    "other",
    [
        replace(ROOMY, elements=65535),
        replace(ROOMY, extent=65535),
        ground_of([(1, 65535), (1, 131072)], [(64, 256), (16, 1000)]),
        ground_of([(1, 65536), (1, 131072)], [(64, 257), (16, 1000)]),
    ],
)
def test_whatever_the_draw_depends_on_changes_it(other):
    assert draw(ROOMY, "salt") != draw(other, "salt")
    assert draw(ROOMY, "salt") != draw(ROOMY, "another")


def test_the_draw_is_the_same_for_everyone():
    """A drawn config is part of published results: changing this needs a new VERSION."""
    names = [item.config.name for item in draw(ROOMY, "kabuild-public-1").configs]

    assert names == GOLDEN


def test_no_dim_exceeds_the_extent():
    configs = draw(replace(ROOMY, extent=1024), "salt", cycles=5).configs

    assert {item.class_ for item in configs} == set(CLASSES)
    assert max(value for item in configs for value in item.config.dims.values()) <= 1024


def test_integer_inputs_get_no_value_shift():
    signature = Signature(
        (Argument("x", "i32", ("rows",)),), (Argument("y", "i32", ("rows",)),), (), ("rows",)
    )
    ground = replace(ROOMY, signature=signature, space=Space({"rows": (1, 99999)}, ("f32",)))
    ground = replace(ground, visible=(Config("v", {"rows": 64}, "f32", {}),))

    assert {item.distribution for item in draw(ground, "salt").configs} == {"default"}


def test_a_point_has_no_unseen_config():
    drawn = draw(ground_of([(8, 8)], [(8,)], dtypes=("f32",)), "salt")

    assert drawn.configs == ()
    assert set(drawn.missing) == set(CLASSES)


@pytest.mark.parametrize(
    ("class_", "inside", "outside"),
    [
        ("edge", (1, 500), (2, 500)),
        ("scale_up", (65, 2), (64, 1000)),
        ("scale_down", (32, 256), (64, 256)),
        ("scale_down", (16, 999), (65, 1)),
        ("misaligned", (64, 257), (64, 256)),
        ("asymmetric", (4, 64), (4, 63)),
        ("production", (128, 768), (128, 769)),
    ],
)
def test_a_class_means_what_it_says(class_, inside, outside):
    def dims(values):
        return dict(zip(NAMES, values, strict=False))

    assert belongs(class_, dims(inside), ROOMY)
    assert not belongs(class_, dims(outside), ROOMY)


@settings(max_examples=examples(100), deadline=None)
@given(grounds(), st.integers(0, 8))
def test_edge_configs_are_valid_new_and_bounded_in_number(ground, wanted):
    configs = edges(ground, "salt", wanted)

    assert len(configs) <= wanted
    assert len({config.name for config in configs}) == len(configs)
    for config in configs:
        assert ground.fits(config.dims)
        assert config.name not in {visible.name for visible in ground.visible}
    assert configs == edges(ground, "salt", wanted)


def test_edges_hold_ones_primes_and_one_past_powers_of_two():
    values = {value for c in edges(ROOMY, "salt", 24) for value in c.dims.values()}

    assert 1 in values
    assert values & {7, 13, 31, 61, 127, 251, 509, 1021}
    assert values & {9, 17, 33, 65, 129, 257, 513, 1025}


@settings(max_examples=examples(100), deadline=None)
@given(grounds(), st.integers(1, 5000))
def test_a_reduced_config_is_small_or_as_small_as_the_space_allows(ground, elements):
    config = reduced(ground.visible[0], ground, elements)

    assert ground.space.contains(config.dims)
    assert all(config.dims[n] <= v for n, v in ground.visible[0].dims.items())
    small = largest_tensor(ground.signature, config.dims) <= elements
    assert small or config == ground.visible[0] or config.dims == ground.least()


def test_a_config_without_dims_stays_as_large_as_it_is():
    signature = Signature((Argument("x", "T", ("128",)),), (Argument("y", "T", ("128",)),), (), ())
    config = Config("f32", {}, "f32", {})
    ground = Ground(signature, Space({}, ("f32",)), 64, (config,))

    assert reduced(config, ground, 64) == config


def test_sampling_needs_the_standard_library_alone():
    code = "import sys, base.sampler, correctness.edges, score; assert 'torch' not in sys.modules"
    subprocess.run(
        [sys.executable, "-S", "-c", code],
        check=True,
        cwd=Path(draw.__code__.co_filename).parents[1],
    )


GOLDEN = [
    "f32 rows=1 cols=1",
    "f16 rows=299 cols=219",
    "f32 rows=4 cols=64",
    "f16 rows=1686 cols=25",
    "f32 rows=201 cols=46",
    "f16 rows=10389 cols=4",
    "f32 rows=6656 cols=1",
    "f16 rows=6656 cols=1",
]
