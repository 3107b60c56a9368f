"""Changes of files: reported by the system, or found without its help."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import watchfiles
from watchfiles._rust_notify import WatchfilesRustInternalError

from kabuild.cli import changes
from kabuild.cli.changes import ChangedFiles
from kabuild.watch import Changes
from kabuild.watched import Places


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(changes, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(changes, "LOOK_MS", 50)
    (tmp_path / "work/a").mkdir(parents=True)
    (tmp_path / "work/a/file").write_text("first")
    return tmp_path / "work"


def until(groups: Changes, wanted: Path) -> None:
    """Go on until a change is reported; no time is the right one to give up."""
    for group in groups:
        if wanted in group:
            return
    raise AssertionError(wanted)


def follow(changed: ChangedFiles, work: Path) -> None:
    """Save, make, remove, and make again."""
    calls = iter(range(10**9))

    def places() -> Places:
        if next(calls) == 2:  # it watches by now
            (work / "a/file").write_text("saved anew")
        return Places(frozenset({work / "a/file"}), work, frozenset())

    groups = changed(places)
    until(groups, work / "a/file")
    (work / "new").mkdir()
    until(groups, work / "new")
    (work / "new/inside").write_text("")
    until(groups, work / "new/inside")
    shutil.rmtree(work / "a")
    until(groups, work / "a")
    (work / "a").mkdir()
    (work / "a/file").write_text("back")
    until(groups, work / "a/file")


def test_the_system_reports_changes(work: Path) -> None:
    follow(ChangedFiles(print), work)


def test_a_new_directory_with_an_old_inode_number_is_followed(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system gives numbers of removed directories to the next ones, or does not."""
    monkeypatch.setattr(changes, "_identity", lambda path: (1, 1) if path.is_dir() else None)
    kernel = tmp_path / "elsewhere/my.hip"
    kernel.parent.mkdir()
    calls = iter(range(10**9))

    def places() -> Places:
        if next(calls) == 2:  # it watches by now
            kernel.write_text("first")
        return Places(frozenset({kernel}), work, frozenset())

    groups = ChangedFiles(print)(places)
    until(groups, kernel)
    shutil.rmtree(kernel.parent)
    kernel.parent.mkdir()
    until(groups, kernel.parent)
    kernel.write_text("back")
    until(groups, kernel)


def test_a_name_that_is_not_utf_8_is_no_obstacle(work: Path) -> None:
    """Of a directory, which watchfiles cannot be told of, and which may appear at any time."""
    os.mkdir(os.fsencode(work) + b"/\xff")  # noqa: PTH102
    warnings: list[str] = []

    follow(ChangedFiles(warnings.append), work)

    assert len(warnings) == 1


@pytest.mark.parametrize(
    "error",
    [
        OSError("OS file watch limit reached. about ['/x'] (Error { kind: MaxFilesWatch })"),
        PermissionError(13, "Permission denied"),
        WatchfilesRustInternalError("Too many open files (os error 24)"),
        UnicodeEncodeError("utf-8", "\udcff", 0, 1, "surrogates not allowed"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_without_the_help_of_the_system_files_are_looked_at(
    work: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise error

    monkeypatch.setattr(watchfiles, "watch", refuse)
    warnings: list[str] = []

    follow(ChangedFiles(warnings.append), work)

    (warning,) = warnings
    assert warning.startswith("the system cannot report changes of files: ")
    assert "about [" not in warning
