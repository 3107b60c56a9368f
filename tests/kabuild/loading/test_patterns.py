"""Patterns of the command line."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import pytest

from kabuild.base.errors import ExitCode, InfraError, KabuildError, LoadErrors, Reason, UsageError
from kabuild.loading import Loader, TagFilter, expand

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.kabuild.conftest import Project


@pytest.fixture
def loader(project: Project) -> Loader:
    project.task("t/one", 'tags = ["smoke", "gpu"]')
    project.task("t/two", 'tags = ["smoke"]')
    project.task("t/slow", 'tags = ["manual"]')
    project.write("t/BUILD.toml", '[[group]]\nname = "t"\n[[group]]\nname = "both"\n')
    return project.loader()


@pytest.mark.parametrize(
    ("patterns", "package", "labels"),
    [
        ("//t/...", "", "//t:both //t:t //t/one:one //t/two:two"),
        ("//t:all", "", "//t:both //t:t"),
        ("//t:*", "", "//t:both //t:t"),
        ("//t", "", "//t:t"),
        ("//t/slow", "", "//t/slow:slow"),
        ("//t/one:one.perf", "", "//t/one:one.perf"),
        ("//t/one:one.baseline.compile", "", "//t/one:one.baseline.compile"),
        ("//t/... -//t/one", "", "//t:both //t:t //t/two:two"),
        ("//t/... -//t:all", "", "//t/one:one //t/two:two"),
        ("//t/... -//t/... //t/two", "", "//t/two:two"),
        ("-//t/one //t/one", "", "//t/one:one"),
        ("//t/one:one.perf //t/one -//t/one", "", ""),
        ("//t/one:one.perf -//t/one:one.perf", "", ""),
        ("...", "t", "//t:both //t:t //t/one:one //t/two:two"),
        ("one/...", "t", "//t/one:one"),
        (":all", "t", "//t:both //t:t"),
        (":both", "t", "//t:both"),
        ("both", "t", "//t:both"),
        ("one", "t", "//t/one:one"),
        ("one.perf", "t/one", "//t/one:one.perf"),
        ("t/one", "", "//t/one:one"),
        ("t/one/", "", "//t/one:one"),
        ("one:one.perf", "t", "//t/one:one.perf"),
        ("//t/two //t/one //t/two", "", "//t/one:one //t/two:two"),
        ("//t/...:all", "", "//t:both //t:t //t/one:one //t/two:two"),
        ("//t/...:*.perf", "", "//t/one:one.perf //t/two:two.perf"),
        ("...:*.baseline.compile -//t/two", "t", "//t/one:one.baseline.compile"),
        ("//t/one:*.perf", "", "//t/one:one.perf"),
        ("//t/...:*.perf -//t/one:*.perf", "", "//t/two:two.perf"),
        ("//t/one:one.baseline.compile -//t/...:*.compile", "", "//t/one:one.baseline.compile"),
        ("", "", ""),
    ],
)
def test_expansion(loader: Loader, patterns: str, package: str, labels: str) -> None:
    found = expand(loader, patterns.split(), package=package)
    assert [str(label) for label in found] == labels.split()


@pytest.mark.parametrize(
    ("tags", "labels"),
    [
        ("smoke", "//t/one:one //t/two:two"),
        ("smoke,-gpu", "//t/two:two"),
        ("-smoke", "//t:both //t:t"),
        ("gpu, other", "//t/one:one"),
        ("", "//t:both //t:t //t/one:one //t/two:two"),
    ],
)
def test_tag_filters(loader: Loader, tags: str, labels: str) -> None:
    assert [str(label) for label in expand(loader, ["//t/..."], tags=tags)] == labels.split()


def test_manual_targets_on_demand(loader: Loader) -> None:
    assert len(expand(loader, ["//t/..."], manual=True)) == 5


def test_a_filter_reads_blanks_and_commas() -> None:
    assert TagFilter.parse(" a ,, -b") == TagFilter(frozenset({"a"}), frozenset({"b"}))


@pytest.mark.parametrize(
    ("patterns", "reason", "hint"),
    [
        ("//t/onee", Reason.UNKNOWN_PACKAGE, "did you mean '//t/one'?"),
        ("//t/one:onn", Reason.UNKNOWN_TARGET, "did you mean ':one'?"),
        ("//t/...:*.compil", Reason.BAD_PATTERN, "did you mean 'compile'?"),
        ("//t:*.compile", Reason.BAD_PATTERN, ""),
        ("//t/... -//t/...:*.perf", Reason.BAD_PATTERN, "choose gates with --gates"),
        ("//tt/...", Reason.UNKNOWN_PACKAGE, "did you mean '//t/...'?"),
        ("//t/one/x/...", Reason.UNKNOWN_PACKAGE, ""),
        ("//x:all", Reason.UNKNOWN_PACKAGE, ""),
        ("//t/... -//t/onee", Reason.UNKNOWN_PACKAGE, "'//t/one'"),
        ("//t/... -//u/...", Reason.UNKNOWN_PACKAGE, ""),
        ("//t/... -//t/one:one.perf", Reason.BAD_PATTERN, "--gates"),
        ("@x/a", Reason.BAD_LABEL, "@kernelbench"),
        ("@x//a", Reason.UNKNOWN_PACKAGE, "kabuild import"),
        ("nothing", Reason.UNKNOWN_PACKAGE, ""),
    ],
)
def test_mistakes_are_usage_errors(
    loader: Loader, patterns: str, reason: Reason, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        expand(loader, patterns.split())
    assert caught.value.reason is reason
    assert hint in caught.value.hint


def test_a_narrow_pattern_reads_nothing_else(project: Project) -> None:
    project.task("good")
    project.write("bad/BUILD.toml", "[[")
    assert len(expand(project.loader(), ["//good"])) == 1


def test_a_wildcard_reports_all_broken_packages_together(project: Project) -> None:
    project.task("good")
    project.write("bad/BUILD.toml", "[[")
    project.write("worse/BUILD.toml", "[[nothing]]\nname = 'x'\n[[task]]\n")
    with pytest.raises(KabuildError) as caught:
        expand(project.loader(), ["//..."])
    assert isinstance(caught.value, LoadErrors)
    lines = [str(error.position) for error in caught.value.errors]
    assert lines == ["bad/BUILD.toml:1:3", "worse/BUILD.toml:1", "worse/BUILD.toml:3"]


def test_directories_that_are_too_deep_are_left_out(project: Project, loader: Loader) -> None:
    """Their paths are longer than a path may be; all others count."""
    below = os.open(project.root / "t", os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=below)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=below)
        os.close(below)
        below = inner
    os.close(below)

    found = " ".join(map(str, expand(loader, ["//t/..."])))

    assert found == "//t:both //t:t //t/one:one //t/two:two"
    (said,) = loader.left_out.values()
    assert said.startswith("skipped t/ddd")
    assert said.endswith(": File name too long")


def test_a_link_to_itself_holds_no_packages(project: Project, loader: Loader) -> None:
    (project.root / "t/loop").symlink_to("loop")
    for pattern in ("//t/loop", "//t/loop/x", "//t/loop/..."):
        with pytest.raises(UsageError, match="no package"):
            expand(loader, [pattern])


@pytest.fixture
def locked(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """Makes a directory unreadable, for root as well."""
    scan = os.scandir
    closed: set[str] = set()

    def scandir(path: str) -> Any:
        if path in closed:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr("kabuild.loading.walk.os.scandir", scandir)
    return lambda path: closed.add(str(path))


@pytest.mark.parametrize("pattern", ["//...", "//t/...", "//t/one/..."])
def test_directories_that_cannot_be_read_are_not_missing(
    project: Project, locked: Callable[[Path], None], pattern: str
) -> None:
    project.task("t/one")
    locked(project.root / ("t/one" if "one" in pattern else "t"))
    locked(project.root / "toolchains")

    with pytest.raises(InfraError, match="can be read") as refused:
        expand(project.loader(), [pattern])

    assert refused.value.exit_code is ExitCode.ENVIRONMENT
    assert "skipped t: Permission" in refused.value.hint.replace("t/one", "t")


def test_what_is_missing_beside_an_unreadable_directory_is_missing(
    project: Project, locked: Callable[[Path], None]
) -> None:
    project.task("t/one")
    project.task("closed/one")
    locked(project.root / "closed")

    assert len(expand(project.loader(), ["//t/..."])) == 1
    with pytest.raises(UsageError, match="no package below '//tt'"):
        expand(project.loader(), ["//tt/..."])
