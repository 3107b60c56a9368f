"""Did-you-mean."""

from __future__ import annotations

import pytest

from kabuild.base.suggest import suggest, suggest_path


def test_a_near_name_is_suggested() -> None:
    assert suggest("sofmax", ["gelu", "softmax"]) == "did you mean 'softmax'?"


def test_what_a_name_begins_with_is_nearer_than_one_that_is_spelled_alike() -> None:
    known = ["a/23_Softmax", "a/31_ELU", "a/3_Sum"]

    assert suggest("a/23", known) == "did you mean 'a/23_Softmax'?"
    assert suggest("a/31_E", known) == "did you mean 'a/31_ELU'?"
    assert suggest("", known) == ""


def test_nothing_near_gives_nothing() -> None:
    assert suggest("xyz", ["gelu", "softmax"]) == ""


PACKAGES = ["//tasks/hip2hip/scan", "//tasks/hip2hip/softmax", "//tasks/torch2hip/gelu"]


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("//tasks/hip2hip/sofmax", "//tasks/hip2hip/softmax"),
        ("//tasks/hip2hip/gelu", "//tasks/torch2hip/gelu"),
        ("//softmax", "//tasks/hip2hip/softmax"),
        ("//task/hip2hip/scam", "//tasks/hip2hip/scan"),
    ],
)
def test_the_package_with_a_like_name_is_suggested(path: str, meant: str) -> None:
    assert suggest_path(path, PACKAGES) == f"did you mean '{meant}'?"


@pytest.mark.parametrize("path", ["//tasks/nothing", "//tasks/hip2hip/rope", "//zzz"])
def test_a_common_directory_alone_suggests_nothing(path: str) -> None:
    assert suggest_path(path, PACKAGES) == ""
    assert suggest_path(path, []) == ""
