"""Which model files say how they are trained."""

from __future__ import annotations

import pytest

from kabuild.neural.training import Training, has_loss

FACTS = {
    "steps": 20,
    "loss": None,
    "gradient": 0.5,
    "eager_loss": 1e-7,
    "eager_gradient": 1e-6,
    "first": 2.0,
    "last": 1.0,
    "wrong": "the loss is inf off in step 1",
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
