"""What is watched: links and their targets, and single directories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kabuild.loading.request import Request
from kabuild.watched import Places, given_paths


def test_a_link_to_a_solution_is_followed_wherever_it_leads(tmp_path: Path) -> None:
    """All that decides which file is read: each link on the way, and the file at the end."""
    real = tmp_path.resolve()
    (real / "v1").mkdir()
    (real / "v1/k.hip").write_text("")
    (real / "current").symlink_to("v1")
    (real / "mine.hip").symlink_to("current/../current/k.hip")
    (real / "loop").symlink_to("loop")

    def found(solution: str) -> set[str]:
        paths = given_paths(Request(patterns=(), cwd=real, solution=Path(solution)))
        return {str(path.relative_to(real)) for path in paths}

    assert found("mine.hip") == {"mine.hip", "current", "v1/k.hip"}
    assert found("v1/k.hip") == {"v1/k.hip"}
    assert found("loop") == {"loop"}
    (real / "current").unlink()
    assert found("mine.hip") == {"mine.hip", "current/k.hip"}, "what it lacks may come"


def test_directories_are_watched_without_those_that_builds_write(tmp_path: Path) -> None:
    for name in ("tasks/a", "tasks/data/deep", ".git/objects", "out/tasks", "cache/cas", "__x__"):
        (tmp_path / "work" / name).mkdir(parents=True)
    (tmp_path / "work/tasks/self").symlink_to("/proc/self")
    work, beside = tmp_path / "work", tmp_path / "beside/my.hip"
    given = work / "tasks/.hidden"
    (given / "inside").mkdir(parents=True)

    paths = frozenset({beside, work / "tasks/a/k.hip", given})
    places = Places(paths, work, frozenset({work / "out", work / "cache"}))

    assert {str(path.relative_to(tmp_path)) for path in places.directories()} == {
        "beside",
        *("work", "work/tasks", "work/tasks/a", "work/tasks/data", "work/tasks/data/deep"),
        *("work/tasks/.hidden", "work/tasks/.hidden/inside"),
    }


def test_an_unreadable_directory_is_no_obstacle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read all, so that the system call is replaced."""
    closed, solution = tmp_path / "work/closed", tmp_path / "closed/my.hip"
    for directory in (closed, solution.parent):
        directory.mkdir(parents=True)
    solution.write_text("")
    monkeypatch.setattr(os, "access", lambda path, _: Path(path).name != "closed")

    places = Places(frozenset({solution}), tmp_path / "work", frozenset())

    assert places.directories() == {tmp_path / "work", solution}
