"""Packages and targets of a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kabuild.base.errors import KabuildError, LoadError, Position, Reason, UsageError
from kabuild.loading import builtin_root, kabuild_root, roots, source_roots
from kabuild.model.action import Source
from kabuild.model.label import Label

if TYPE_CHECKING:
    from tests.kabuild.conftest import Project

GROUP = '[[group]]\nname = "x"\n'


def failure(project: Project, label: str, position: Position | None = None) -> KabuildError:
    with pytest.raises(KabuildError) as caught:
        project.loader().target(Label.parse(label), position)
    return caught.value


def test_subtargets_lead_to_their_target(project: Project) -> None:
    project.task("a")
    loader = project.loader()
    target = loader.target(Label("a", "a"))
    assert loader.target(Label("a", "a.perf")) is target
    assert loader.target(Label("a", "a.baseline.compile")) is target
    assert loader.rule(target).kind == "task"
    assert loader.package("a").names() == tuple(label.name for label in target.labels())


def test_shared_packages_are_looked_up_in_the_workspace_first(project: Project) -> None:
    project.write("builtin/toolchains/cc/BUILD.toml", '[[group]]\nname = "never"')
    project.write("builtin/toolchains/ld/BUILD.toml", '[[task]]\nname = "ld"\nsource = "s"')
    project.write("builtin/toolchains/ld/s")
    project.write("builtin/tasks/t/BUILD.toml", GROUP)
    loader = project.loader()
    assert loader.package("toolchains/cc").root == "workspace"
    package = loader.package("toolchains/ld")
    assert package.root == "builtin"
    assert package.build_file == str(project.builtin / "toolchains/ld/BUILD.toml")
    assert package.targets["ld"].attrs["source"] == Source("toolchains/ld/s", "builtin")
    assert not loader.has_package("tasks/t")
    assert loader.siblings("toolchains") == ("toolchains/agents", "toolchains/cc", "toolchains/ld")


@pytest.mark.parametrize(
    ("label", "reason", "message", "hint"),
    [
        ("//a:b", Reason.UNKNOWN_TARGET, "no target ':b' in //a", "it has: :a"),
        ("//a:a.pref", Reason.UNKNOWN_TARGET, "no target ':a.pref' in", "did you mean ':a.perf'?"),
        ("//a:ax.perf", Reason.UNKNOWN_TARGET, "no target ':ax.perf'", "did you mean ':a.perf'?"),
        ("//toolchains/cd", Reason.UNKNOWN_PACKAGE, "no package", "did you mean '//toolchains/cc'"),
        ("//toolchain/cc", Reason.UNKNOWN_PACKAGE, "no package", "mean '//toolchains/cc'?"),
        ("//toolchains", Reason.UNKNOWN_PACKAGE, "no package", "mean '//toolchains/...'?"),
        (
            "//toolchains/cc/BUILD.toml",
            Reason.UNKNOWN_PACKAGE,
            "is a file",
            "mean '//toolchains/cc'",
        ),
        ("//WORKSPACE.toml", Reason.UNKNOWN_PACKAGE, "is a file", "query '//...'"),
        ("//WORKSPACE.toml/x", Reason.UNKNOWN_PACKAGE, "no package", "query '//...'"),
        ("//zzz", Reason.UNKNOWN_PACKAGE, "zzz/BUILD.toml does not exist", "query '//...'"),
    ],
)
def test_unknown_names(
    project: Project, label: str, reason: Reason, message: str, hint: str
) -> None:
    """On the command line they are usage errors, in a BUILD.toml errors at that line."""
    project.task("a")
    error = failure(project, label)
    assert isinstance(error, UsageError)
    assert error.reason is reason
    assert message in error.message
    assert hint in error.hint
    there = failure(project, label, Position("x/BUILD.toml", 9))
    assert isinstance(there, LoadError)
    assert str(there).startswith("x/BUILD.toml:9: ")


def test_an_empty_package_has_nothing(project: Project) -> None:
    project.write("a/BUILD.toml", "# nothing yet")
    assert failure(project, "//a").hint == "it has: none"


def test_a_build_file_that_cannot_be_read(project: Project) -> None:
    (project.root / "a").mkdir()
    (project.root / "a/BUILD.toml").symlink_to("/proc/self/mem")  # a file that fails to read
    with pytest.raises(LoadError, match="cannot be read: Input/output error") as caught:
        project.loader().package("a")
    assert caught.value.position == Position("a/BUILD.toml")


def test_positions_of_attributes(project: Project) -> None:
    project.write("a/x.src")
    project.write(
        "a/BUILD.toml",
        GROUP + '[[task]]\nname = "y"\nsource = "x.src"\ndeps = [\n ":x",\n ":z",\n]\n',
    )
    loader = project.loader()
    target = loader.target(Label("a", "y"))
    assert loader.position(target) == target.position == Position("a/BUILD.toml", 3)
    assert loader.position(target, "deps", 1) == Position("a/BUILD.toml", 8)


def test_packages_below(project: Project) -> None:
    for path in ("", "b/", "a/", "a/c/", "a.b/", "out/z/", "a/out/", ".dot/", "no/package/here/"):
        project.write(f"{path}BUILD.toml", GROUP)
    project.write("inner/WORKSPACE.toml", 'name = "inner"')
    project.write("inner/p/BUILD.toml", GROUP)
    project.write("venv/pyvenv.cfg")
    project.write("venv/p/BUILD.toml", GROUP)
    (project.root / "loop").symlink_to(project.root)
    loader = project.loader()
    own = [name for name in loader.packages_below("") if not name.startswith("toolchains/")]
    assert own == ["", "a", "a/c", "a/out", "a.b", "b", "no/package/here"]
    assert list(loader.packages_below("a")) == ["a", "a/c", "a/out"]


def test_sources_have_roots_in_this_checkout(project: Project) -> None:
    roots = source_roots(project.root)
    assert roots["workspace"] == project.root
    assert (roots["kabuild"] / "rule" / "attr.py").is_file()
    assert (roots["builtin"] / "rules").is_dir()
    assert builtin_root() == kabuild_root().parent


def test_an_installed_wheel_carries_its_rules_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kabuild/builtin").mkdir(parents=True)
    monkeypatch.setattr(roots, "__file__", str(tmp_path / "kabuild/loading/roots.py"))
    assert builtin_root() == tmp_path / "kabuild/builtin"
