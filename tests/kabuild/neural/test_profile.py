"""What is believed of a profile, and how it is shown."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest

from kabuild.neural.profile import Profile, render_profile
from kabuild.neural.step import TrainingStep
from kabuild.neural.values import MALFORMED

ROW: dict[str, Any] = {
    "name": "linear",
    "kind": "operator",
    "operators": ["linear"],
    "calls": 2,
    "seconds": 0.002,
    "share": 1.0,
    "bytes": 4096,
    "flops": 65536,
    "bound": "memory",
    "roof_seconds": 0.001,
    "roof_share": 0.5,
    "gain": 2.0,
    "dtypes": ["float32"],
    "shapes": [{"inputs": [[8, 16]], "calls": 2}],
    "modules": ["layer"],
}
STEP: dict[str, Any] = {
    "seconds": 0.01,
    "phases": [{"name": "forward", "seconds": 0.01, "share": 1.0}],
    "operators": [
        {"phase": "forward", "name": "mm", "calls": 2, "seconds": 0.01, "share": 1.0},
    ],
}
FACTS: dict[str, Any] = {
    "schema": 1,
    "device": "cpu",
    "torch": "2",
    "eager_seconds": 0.003,
    "graph_seconds": 0.002,
    "roofs": {"bytes_per_second": 1e10, "flops_per_second": {"float32": 1e11}},
    "parts": [ROW],
    "flame": {"name": "model", "seconds": 0.002, "children": []},
    "training": STEP,
}


def test_a_profile_is_shown() -> None:
    text = render_profile(Profile.read(FACTS), "net")

    assert "all together 2.00x" in text
    assert "a training step: 10 ms: forward 100%" in text


@pytest.mark.parametrize("value", [10**400, -1, 1e300, math.nan, math.inf, True, "1", None])
@pytest.mark.parametrize(
    "path",
    [
        ("eager_seconds",),
        ("graph_seconds",),
        ("roofs", "bytes_per_second"),
        ("roofs", "flops_per_second", "float32"),
        *(("parts", 0, name) for name in ROW if isinstance(ROW[name], int | float)),
        ("parts", 0, "shapes", 0, "calls"),
        ("parts", 0, "shapes", 0, "inputs", 0, 0),
        ("flame", "seconds"),
        ("training", "seconds"),
        ("training", "phases", 0, "share"),
        ("training", "operators", 0, "calls"),
    ],
)
def test_no_number_is_believed_that_nothing_measures(path: tuple[Any, ...], value: Any) -> None:
    facts = copy.deepcopy(FACTS)
    *above, last = path
    inside: Any = facts
    for name in above:
        inside = inside[name]
    inside[last] = value

    with pytest.raises(MALFORMED):
        Profile.read(facts)


def test_a_share_is_part_of_a_whole() -> None:
    rows = {"phases": [{"name": "forward", "seconds": 0.01, "share": 1e9}]}

    with pytest.raises(MALFORMED):
        TrainingStep.read({**STEP, **rows})


def test_a_model_without_operators_gains_nothing() -> None:
    facts = {**FACTS, "parts": [], "graph_seconds": 0.0, "training": None}

    assert "all together 1.00x" in render_profile(Profile.read(facts), "net")
