"""Installed distributions."""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kabuild.toolchain.distributions import closure, import_path, installed, normalise

Install = Callable[..., Path]


@pytest.mark.parametrize("name", ["Typing_Extensions", "typing-extensions", "typing.-extensions"])
def test_names_have_one_spelling(name: str) -> None:
    assert normalise(name) == "typing-extensions"


def test_requirements_without_extras(install: Install, site: Path) -> None:
    install(
        "Big-Thing",
        requires=(
            "numpy>=2; python_version > '3'",
            "Typing_Extensions",
            'pytest; extra == "dev"',
            "scipy [fast] ; (sys_platform == 'x') and extra=='all'",
        ),
    )
    (thing,) = installed([str(site)]).values()
    assert (thing.name, thing.version, thing.site) == ("big-thing", "1.0", site)
    assert thing.requirements() == ("numpy", "typing-extensions")


def test_the_closure_holds_what_is_installed(install: Install, site: Path) -> None:
    install("a", requires=("b", "absent"))
    install("b", requires=("c", "a"))
    install("c")
    install("unrelated")
    known = installed([str(site)])
    assert [found.name for found in closure(["A"], known)] == ["a", "b", "c"]
    with pytest.raises(KeyError):
        closure(["absent"], known)


def test_the_first_directory_wins_and_others_may_be_missing(
    install: Install, site: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    install("a", "1.0")
    install("a", "2.0", at=other)
    assert installed([str(tmp_path / "gone"), str(site), str(other)])["a"].version == "1.0"
    assert installed([str(other), str(site)])["a"].version == "2.0"


def test_it_agrees_with_importlib_on_this_environment() -> None:
    known = installed(sys.path)
    theirs = {
        normalise(found.metadata["Name"]): found for found in importlib.metadata.distributions()
    }
    assert {"torch", "numpy"} <= set(known)
    for name, found in known.items():
        assert found.version == theirs[name].version


def test_only_directories_that_a_sandbox_searches_too_are_searched(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, user, here = (tmp_path / name for name in ("given", "user", "here"))
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("PYTHONPATH", f"{given}{os.pathsep}{site}")
    monkeypatch.setattr("site.USER_SITE", str(user))
    added = str(tmp_path / "added-by-a-pth")
    monkeypatch.setattr(sys, "path", ["", *map(str, (here, given, site, user)), added])

    assert import_path() == (str(site), added)


def test_a_package_of_the_shell_does_not_speak_for_the_installed_one(
    install: Callable[..., Path], site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("torch", "2.0")
    install("torch", "1.0", at=tmp_path / "given")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "given"))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "given"), str(site)])

    assert installed(import_path())["torch"].version == "2.0"
