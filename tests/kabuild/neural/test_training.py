"""Which model files say how they are trained."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.model.label import Label
from kabuild.model.task_result import TaskResult
from kabuild.neural.training import Training, has_loss
from kabuild.neural.verify import ALL, Variant, Verified, render

FACTS = {
    "steps": 20,
    "loss": None,
    "gradient": 0.5,
    "eager_loss": 1e-7,
    "eager_gradient": 1e-6,
    "first": 2.0,
    "last": 1.0,
    "wrong": "the loss is inf off in step 1",
    "known": 20,
}


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("def build(): ...\ndef loss(y, x): ...", True),
        ("loss = functools.partial(measure, 2)", True),
        ("def lossy(y): ...", False),
        ("    def loss(self, y): ...", False),
    ],
)
def test_a_loss_is_a_name_of_the_file(text: str, has: bool) -> None:
    assert has_loss(text) is has


def test_what_is_infinite_is_shown_and_kept() -> None:
    found = Training.read(FACTS)

    assert found.to_json() == FACTS
    assert "loss off by infinitely much (own code 1e-07)" in str(found)
    assert str(found).endswith("too far off: the loss is inf off in step 1")
    assert max(map(len, str(found).splitlines())) <= 100


def test_facts_of_another_form_are_refused() -> None:
    with pytest.raises(TypeError):
        Training.read({**FACTS, "wrong": None})


def verified(**changed: object) -> Verified:
    """Of a model whose results are right."""
    result = TaskResult(Label("tasks/net/whole", "whole"), {})
    training = Training.read({**FACTS, "loss": 0.1, "wrong": "", **changed})
    return Verified((), {}, None, (Variant(ALL, Path("all.py"), result),), (), training=training)


@pytest.mark.parametrize("changed", [{"wrong": "the loss is 2 off"}, {"known": 9}])
def test_a_model_that_trains_wrong_or_unknown_does_not_pass(changed: dict[str, object]) -> None:
    found = verified(**changed)

    assert found.wrong
    assert found.to_json()["wrong"] == found.to_json()["training"]["wrong"] == found.wrong
    rows = [line.split() for line in render(found).splitlines()]
    assert ["all", "kernels", "FAIL"] in [row[:3] for row in rows]
    assert "does not pass, for what is said above" in render(found)
    assert max(map(len, render(found).splitlines())) <= 100


def test_enough_steps_are_enough_and_the_last_of_them_is_told() -> None:
    found = verified(known=10)

    assert found.wrong == ""
    assert "nothing can be told after step 10: " in str(found.training)
    assert "does not pass" not in render(found)
