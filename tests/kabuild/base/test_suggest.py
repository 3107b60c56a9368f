"""Did-you-mean."""

from __future__ import annotations

from kabuild.base.suggest import suggest


def test_a_near_name_is_suggested() -> None:
    assert suggest("sofmax", ["gelu", "softmax"]) == "did you mean 'softmax'?"


def test_nothing_near_gives_nothing() -> None:
    assert suggest("xyz", ["gelu", "softmax"]) == ""
