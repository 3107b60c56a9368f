"""The packages of a model's parts, on disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kabuild.base.errors import LoadError
from kabuild.neural.packages import (
    FILE,
    Extracted,
    Known,
    remove_package,
    undone,
    write_packages,
)
from kabuild.neural.values import MALFORMED


def test_solutions_stay_where_packages_are_written_and_removed(tmp_path: Path) -> None:
    attrs = {"configs": [{"n": 4}], "dims": {"n": "1..4"}}
    graph = {"forward": "", "held": [], "constants": [], "functions": {}}
    facts = {
        "schema": 2,
        "parts": [{"name": "norm", "attrs": attrs, "kernel": "k", "reference": "r", "calls": [2]}],
        "left_out": [],
        "whole": {"attrs": attrs, "reference": "r"},
        "step": {"attrs": attrs, "reference": "r", "adapter": "a"},
        "graph": graph,
    }
    solution = tmp_path / "norm/solutions/expert/norm.py"
    solution.parent.mkdir(parents=True)
    solution.write_text("kept")

    write_packages(tmp_path, b"model", Extracted.read(facts))
    assert "{ n = 4 },  # 2 in a call" in (tmp_path / "norm/BUILD.toml").read_text()
    remove_package(tmp_path, "norm")

    assert solution.read_text() == "kept"
    assert not (tmp_path / "norm/BUILD.toml").exists()
    with pytest.raises(ValueError, match="not a Python identifier"):
        Extracted.read({**facts, "graph": {**graph, "functions": {"../x": ""}}})


def test_numbers_of_any_size_are_refused_in_declarations() -> None:
    attrs = {"configs": [{"n": 10**400}], "dims": {"n": "1..4"}}
    part = {"name": "norm", "attrs": attrs, "kernel": "k", "reference": "r", "calls": [2]}

    with pytest.raises(MALFORMED, match="more than 64 bits"):
        Extracted.read({"schema": 2, "parts": [part]})


PART: dict[str, Any] = {
    "share": 0.4,
    "roof_share": 0.5,
    "calls": [2],
    "is_task": True,
}
GRAPH: dict[str, Any] = {
    "forward": "def forward(w, c, a0):\n    return part_sub(part_norm(part_part_x(a0)))\n",
    "held": [],
    "constants": [],
    "functions": {"part_sub": "", "part_norm": "", "part_part_x": ""},
}


def known_in(directory: Path, graph: dict[str, Any], **parts: dict[str, Any]) -> Known:
    value = {"schema": 2, "name": "net", "platform": "cpu", "parts": parts, "graph": graph}
    (directory / FILE).write_text(json.dumps(value))
    return Known.load(directory)


def test_what_is_known_of_a_model_is_read(tmp_path: Path) -> None:
    known = known_in(tmp_path, GRAPH, norm=PART, part_x={**PART, "share": 0.6})

    assert known.parts["norm"].calls == (2,)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"share": 10**400}, "expected a number"),
        ({"share": 1.5}, "a share of at most 1"),
        ({"share": 0.7}, "the shares of all parts are more than 1"),
        ({"roof_share": 10**400}, "expected a number"),
        ({"calls": [10**400]}, "expected a count"),
        ({"calls": ["2"]}, "expected a count"),
    ],
)
def test_an_edited_number_is_one_error(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(LoadError, match=said) as refused:
        known_in(tmp_path, GRAPH, norm={**PART, **changed}, part_x=PART)

    assert "it is not what 'kabuild model extract' writes" in refused.value.message


def test_a_file_of_another_version_says_how_to_write_it_again(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps({"schema": 1}))

    with pytest.raises(LoadError, match="schema 1, expected 2") as refused:
        Known.load(tmp_path)

    assert refused.value.hint == "write it again with: kabuild model extract MODEL.py -o DIRECTORY"


def test_a_part_that_is_called_and_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(LoadError, match="its forward calls part 'norm', which is missing"):
        known_in(tmp_path, {**GRAPH, "functions": {"part_sub": ""}}, norm=PART)


def interrupted(directory: Path, *names: str) -> None:
    """Write files, and be interrupted before the end."""
    with undone(directory, (*names, "never_written")):
        for name in names:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text("after")
        raise KeyboardInterrupt


def test_what_was_written_is_undone_after_an_interruption(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path / "new/net", "a/x", "z")

    assert not [*tmp_path.iterdir()]


def test_what_was_there_is_back_after_an_interruption(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("before")
    (tmp_path / "other").write_text("of others")

    with pytest.raises(KeyboardInterrupt):
        interrupted(tmp_path, "x", "y")

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "x": "before",
        "other": "of others",
    }


def test_what_is_done_stays(tmp_path: Path) -> None:
    with undone(tmp_path, ("x",)):
        (tmp_path / "x").write_text("done")

    assert (tmp_path / "x").read_text() == "done"
