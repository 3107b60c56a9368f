"""What ``make`` installs: pinned by hash, and everything that kabuild asks for."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.testkit.cli import REPOSITORY

REQUIREMENTS = REPOSITORY / "toolchains/python/requirements.txt"
OF_MAKE = {"MAKEFLAGS", "MAKEOVERRIDES", "MAKELEVEL", "MFLAGS", "PINNED"}
"""What the make that runs the tests tells those that it starts."""
LINE = re.compile(r"([a-z0-9-]+)==(\S+)(?: --hash=sha256:[0-9a-f]{64})+")
"""One hash for each wheel that pip may choose: by the version of glibc."""


def pins(text: str) -> dict[str, str]:
    """Versions by name; each line that is no comment is a pin with its hash."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), [line for line, match in zip(lines, found, strict=True) if not match]
    return {match[1]: match[2] for match in found if match}


def test_they_are_what_the_project_asks_for() -> None:
    pinned = pins(REQUIREMENTS.read_text())
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    asked = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    asked += project["project"]["optional-dependencies"]["dev"]

    for requirement in map(Requirement, asked):
        assert requirement.specifier.contains(pinned[canonicalize_name(requirement.name)])


def test_make_installs_nothing_without_its_hash() -> None:
    """What make would run, where this is the Python that the wheels are for."""
    done = subprocess.run(
        ["make", "--dry-run", "--always-make", "setup"],
        cwd=REPOSITORY,
        env={key: value for key, value in os.environ.items() if key not in OF_MAKE},
        capture_output=True,
        text=True,
        check=True,
    )
    pinned, _, unpinned = done.stdout.partition("else set -x;")
    asked, _, installed = pinned.partition("then set -ex;")
    commands = [line.partition(";")[0] for line in installed.splitlines() if "pip install" in line]

    assert "--dry-run" in asked.partition("pip install")[2]
    assert all("--no-deps" in command for command in commands)
    assert ["--require-hashes" in command for command in commands] == [True] * 3 + [False]
    assert commands[-1].endswith("--no-build-isolation --editable .")
    assert "--editable '.[dev]'" in unpinned


@pytest.mark.parametrize("damage", [("sha256:", "sha256:0"), ("==", ">="), (" --hash", "  --hash")])
def test_a_line_without_a_pin_or_a_hash_is_noticed(damage: tuple[str, str]) -> None:
    with pytest.raises(AssertionError):
        pins(REQUIREMENTS.read_text().replace(*damage, 1))
