"""The packages of a model's parts, on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from kabuild.neural.packages import Extracted, remove_package, write_packages


def test_solutions_stay_where_packages_are_written_and_removed(tmp_path: Path) -> None:
    attrs = {"configs": [{"n": 4}], "dims": {"n": "1..4"}}
    graph = {"forward": "", "held": [], "constants": [], "others": {}}
    facts = {
        "schema": 1,
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
        Extracted.read({**facts, "graph": {**graph, "others": {"../x": ""}}})
