"""What is said of two toolchains of one name that differ."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kabuild.bundle.difference import Difference, difference

MACHINE = {
    "schema": 1,
    "kind": "environment",
    "python": "3.11.7",
    "implementation": "cpython-311",
    "platform": "linux-x86_64",
    "libc": "glibc 2.36",
}
VERSIONS = {"filelock": "4.2", "numpy": "2.3.5", "setuptools": "84.2.1", "torch": "2.13.0+cpu"}


def environment(versions: dict[str, str], **changed: Any) -> bytes:
    distributions = [
        {"name": name, "version": version, "record": f"{name} {version}"}
        for name, version in versions.items()
    ]
    return json.dumps({**MACHINE, "distributions": distributions, **changed}).encode()


def of_environments(here: dict[str, str], **changed: Any) -> Difference:
    first = ("numpy", "torch")
    then = environment(VERSIONS)
    return difference("python", then, environment(here, **changed), first=first)


def test_both_versions_of_a_distribution_are_named_with_the_command() -> None:
    found = of_environments({**VERSIONS, "setuptools": "65.5.0"})

    assert found.text == "setuptools 84.2.1 there, 65.5.0 here"
    assert found.remedy == "pip install --force-reinstall --no-deps setuptools==84.2.1"


def test_what_computes_comes_first_and_the_rest_is_counted() -> None:
    found = of_environments(dict.fromkeys(VERSIONS, "1"))

    assert found.text == (
        "numpy 2.3.5 there, 1 here, torch 2.13.0+cpu there, 1 here, "
        "filelock 4.2 there, 1 here and 1 more"
    )
    assert found.remedy == (
        "pip install --force-reinstall --no-deps "
        "--extra-index-url=https://download.pytorch.org/whl/cpu "
        "filelock==4.2 numpy==2.3.5 setuptools==84.2.1 torch==2.13.0+cpu"
    )


def test_another_interpreter_needs_everything_installed_anew() -> None:
    found = of_environments(VERSIONS, python="3.12.1", libc="glibc 2.41")

    assert found.text == "Python 3.11.7 there, 3.12.1 here, glibc 2.36 there, glibc 2.41 here"
    assert found.remedy.startswith("Python 3.11.7, glibc 2.36; pip install ")
    assert "numpy==2.3.5" in found.remedy


def test_another_build_of_one_version() -> None:
    same = [{"name": "numpy", "version": "2.3.5", "record": "another"}]
    rest = {name: version for name, version in VERSIONS.items() if name != "numpy"}
    then, here = environment(VERSIONS), json.loads(environment(rest))
    here["distributions"] += same

    found = difference("python", then, json.dumps(here).encode())

    assert found.text == "numpy 2.3.5, a different build"
    assert found.remedy.endswith("numpy==2.3.5")


def test_the_command_names_nothing_that_is_not_installed_here() -> None:
    """A bundle is anybody's, and so are the names in it."""
    then = environment({**VERSIONS, "mallory": "6.6"})

    found = difference("python", then, environment(VERSIONS))

    assert found == Difference("mallory 6.6 there, none here", "")


@pytest.mark.parametrize("version", ["1; rm -rf ~", "$(id)", "\x1b[2J", "1\n2", ["1"], "9" * 99])
def test_what_is_no_version_is_not_repeated(version: Any) -> None:
    found = of_environments({**VERSIONS, "setuptools": "65.5.0"})
    forged = environment(VERSIONS).replace(b'"84.2.1"', json.dumps(version).encode())

    found = difference("python", forged, environment(VERSIONS))

    assert found == Difference("setuptools none there, 84.2.1 here", "")


@pytest.mark.parametrize(
    ("then", "here", "text", "remedy"),
    [
        (
            {"kind": "distribution", "name": "ziglang", "version": "0.16.0"},
            {"kind": "distribution", "name": "ziglang", "version": "0.17.0"},
            "ziglang 0.16.0 there, 0.17.0 here",
            "toolchains/lock.toml",
        ),
        (
            {"kind": "distribution", "name": "z", "version": "1", "platform": "linux-aarch64"},
            {"kind": "distribution", "name": "z", "version": "1", "platform": "linux-x86_64"},
            "linux-aarch64 there, linux-x86_64 here",
            "toolchains/lock.toml",
        ),
        (
            {"kind": "local", "files": 5, "tree": "a"},
            {"kind": "local", "files": 5, "tree": "b"},
            "the adopted files have other content",
            "kabuild toolchain pin tools --from DIR",
        ),
        (
            {"kind": "pypi", "files": ["a"]},
            {"kind": "local", "files": 5, "tree": "b"},
            "kind pypi there, local here",
            "toolchains/lock.toml",
        ),
        ({"kind": "deb"}, {"kind": "deb", "files": ["b"]}, "other files are pinned", "lock.toml"),
    ],
)
def test_other_kinds(then: dict[str, Any], here: dict[str, Any], text: str, remedy: str) -> None:
    found = difference("tools", json.dumps(then).encode(), json.dumps(here).encode())

    assert found.text == text
    assert remedy in found.remedy


@pytest.mark.parametrize("then", [b"", b"[]", b"\xff", b'{"kind": []}'])
def test_what_is_no_fingerprint(then: bytes) -> None:
    assert difference("t", then, environment({})).text == "kind none there, environment here"


@pytest.mark.parametrize("items", ["x", [1], [{"name": []}], {"a": 1}])
def test_what_is_no_list_of_distributions(items: Any) -> None:
    then = environment({}, distributions=items)

    assert difference("t", then, environment({"a": "1"})).text == "a none there, 1 here"
