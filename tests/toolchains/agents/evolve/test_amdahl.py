"""Turns go where the time is, and fewer of them to what resists."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from amdahl import Part, SharesError, allot, choose, most, read_shares, speedup
from hypothesis import given
from hypothesis import strategies as st

PARTS = (Part("a", 0.6), Part("b", 0.3), Part("c", 0.1))


def _parts(weights: list[int]) -> tuple[Part, ...]:
    whole = sum(weights)
    return tuple(Part(f"p{i}", weight / whole) for i, weight in enumerate(weights))


weights = st.lists(st.integers(1, 1000), min_size=1, max_size=6)


def test_the_law() -> None:
    half = (Part("a", 0.5, speedup=2.0), Part("b", 0.25))

    assert speedup(half) == pytest.approx(1 / 0.75)
    assert most(half, "a") == pytest.approx(2.0), "what is in no part stays"
    assert most((Part("a", 1.0),), "a") == math.inf
    assert speedup(()) == 1.0


@given(weights)
def test_where_nothing_helps_turns_are_shared_as_the_time_is(given_weights: list[int]) -> None:
    parts, turns = _parts(given_weights), 500
    found = allot(parts, turns)

    assert sum(found.values()) == turns
    for part in parts:
        assert abs(found[part.name] - part.share * turns) <= len(parts)


@given(weights, st.floats(1.1, 50), st.data())
def test_what_became_faster_has_less_to_give(
    given_weights: list[int], gain: float, data: st.DataObject
) -> None:
    parts = _parts(given_weights)
    part = data.draw(st.sampled_from(parts))
    faster = tuple(replace(p, speedup=gain) if p is part else p for p in parts)

    assert speedup(faster) > speedup(parts)
    assert speedup(faster) <= most(parts, part.name) * (1 + 1e-9)
    assert allot(faster, 100)[part.name] <= allot(parts, 100)[part.name]


def test_a_turn_in_vain_makes_room_for_others() -> None:
    assert choose(PARTS).name == "a"
    assert choose((replace(PARTS[0], failed=2), *PARTS[1:])).name == "b"
    assert choose((replace(PARTS[0], speedup=4.0), *PARTS[1:])).name == "b"
    assert choose((Part("y", 0.5), Part("x", 0.5))).name == "x"


def test_shares_are_read(tmp_path: Path) -> None:
    path = tmp_path / "shares.json"
    path.write_text('{"softmax": 0.5, "gelu": {"share": 0.3, "speedup": 1.5}}')

    assert read_shares(path) == (Part("softmax", 0.5), Part("gelu", 0.3, 1.5))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "not valid JSON"),
        ("[]", "not an object"),
        ("{}", "not an object"),
        ('{"a": 0.7, "b": 0.4}', "more than 1"),
        ('{"a": "much"}', "'a' has no valid share"),
        ('{"a": true}', "'a' has no valid share"),
        ('{"a": {"speedup": 2}}', "'a' has no valid share"),
        ('{"a": {"share": 0.5, "sped": 2}}', "'a' has no valid share"),
        ('{"a": {"share": 0.5, "speedup": 0}}', "no speedup"),
        ('{"a": 0}', "outside of 0..1"),
        ('{"a": NaN}', "outside of 0..1"),
    ],
)
def test_shares_that_mean_nothing(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "shares.json"
    path.write_text(text)

    with pytest.raises(SharesError, match=complaint):
        read_shares(path)
