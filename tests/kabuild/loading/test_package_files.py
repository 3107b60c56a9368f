"""The files of a package, and globs over them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kabuild.base.errors import Reason
from kabuild.loading.package_files import PackageFiles, glob
from kabuild.model.action import Source
from kabuild.rule.attr import AttributeProblem

FILES = (
    "a.h",
    "b.h",
    "b.txt",
    ".dot.h",
    "src/c.h",
    "src/deep/d.h",
    "src/deep/[x].h",
    ".git/e.h",
    "inner/BUILD.toml",
    "inner/f.h",
    "other/WORKSPACE.toml",
    "other/g.h",
)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for name in FILES:
        file = tmp_path / "p" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    return tmp_path / "p"


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.h", ["a.h", "b.h"]),
        ("b.*", ["b.h", "b.txt"]),
        (".*.h", [".dot.h"]),
        ("*/*.h", ["src/c.h"]),
        ("**/*.h", ["a.h", "b.h", "src/c.h", "src/deep/[x].h", "src/deep/d.h"]),
        ("src/**", ["src/c.h", "src/deep/[x].h", "src/deep/d.h"]),
        ("src/**/d.h", ["src/deep/d.h"]),
        ("src/**/c.h", ["src/c.h"]),
        ("**/deep/*", ["src/deep/[x].h", "src/deep/d.h"]),
        ("*/deep/[*", ["src/deep/[x].h"]),
        ("src/*/e*", []),
        ("no/*", []),
        ("src", []),
    ],
)
def test_globs(package: Path, pattern: str, found: list[str]) -> None:
    """Sorted, without dot files, without the files of packages below."""
    assert glob(package, pattern) == found


def problem(package: Path, kind: str, path: str) -> AttributeProblem:
    files = PackageFiles(package, "p", "workspace")
    with pytest.raises(AttributeProblem) as caught:
        files.files([path]) if kind == "files" else getattr(files, kind)(path)
    return caught.value


def test_files_become_sources_of_their_root(package: Path) -> None:
    files = PackageFiles(package, "x/p", "builtin")
    assert files.file("src/c.h") == Source("x/p/src/c.h", "builtin")
    assert files.tree("src") == Source("x/p/src", "builtin")
    assert files.files(["src/*", "a.h", "*.h"]) == tuple(
        Source(f"x/p/{name}", "builtin") for name in ("a.h", "b.h", "src/c.h")
    )
    assert PackageFiles(package, "", "workspace").file("a.h") == Source("a.h")


@pytest.mark.parametrize(
    ("kind", "path", "reason", "message", "hint"),
    [
        ("file", "a.hh", Reason.MISSING_FILE, "no file 'a.hh' in //p", "did you mean 'a.h'?"),
        ("file", "src/cc.h", Reason.MISSING_FILE, "no file", "did you mean 'c.h'?"),
        ("file", "gone/x", Reason.MISSING_FILE, "no file 'gone/x'", ""),
        ("file", "", Reason.MISSING_FILE, "the path is empty", ""),
        ("file", "src", Reason.BAD_ATTRIBUTE, "'src' is a directory, expected a file", ""),
        ("file", "../p/a.h", Reason.ESCAPING_PATH, "leaves the package //p", "its own package"),
        ("file", "/etc/passwd", Reason.ESCAPING_PATH, "leaves the package", ""),
        ("file", "./a.h", Reason.BAD_ATTRIBUTE, "is not a plain path", "a/b/c"),
        ("file", "é" * 128, Reason.MISSING_FILE, "is too long for a path", "at most 255 bytes"),
        ("tree", "d/" * 1500 + "e", Reason.MISSING_FILE, "is too long for a path", "at most 2000"),
        ("files", "x" * 300 + "/*", Reason.MISSING_FILE, "is too long for a path", ""),
        ("file", "src//c.h", Reason.BAD_ATTRIBUTE, "is not a plain path", ""),
        ("tree", "a.h", Reason.BAD_ATTRIBUTE, "is a file, expected a directory", ""),
        ("tree", "scr", Reason.MISSING_FILE, "no directory 'scr'", "did you mean 'src'?"),
        ("tree", "..", Reason.ESCAPING_PATH, "leaves the package", ""),
        ("files", "*.cu", Reason.MISSING_FILE, "no file matches '*.cu'", ""),
        ("files", "../*", Reason.ESCAPING_PATH, "leaves the package", ""),
        ("files", "gone.h", Reason.MISSING_FILE, "no file 'gone.h'", ""),
    ],
)
def test_mistakes(
    package: Path, kind: str, path: str, reason: Reason, message: str, hint: str
) -> None:
    found = problem(package, kind, path)
    assert found.reason is reason
    assert message in found.message
    assert hint in found.hint
    assert found.path == ((0,) if kind == "files" else ())


def test_links_inside_the_package_are_files(package: Path) -> None:
    (package / "link.h").symlink_to("src/c.h")
    assert PackageFiles(package, "p", "workspace").file("link.h") == Source("p/link.h")
    assert PackageFiles(package, "p", "workspace").tree("src") == Source("p/src")


@pytest.mark.parametrize(
    ("kind", "link", "asked"),
    [
        ("file", "out.h", "out.h"),
        ("files", "out.h", "*.h"),
        ("file", "dir", "dir/secret"),
        ("tree", "dir", "dir"),
        ("tree", "src/deep/out", "src"),
    ],
)
def test_links_out_of_the_package_are_refused(
    package: Path, kind: str, link: str, asked: str
) -> None:
    """Wherever in a tree they are, and whether they lead to a file or a directory."""
    outside = package.parent / "outside"
    outside.mkdir()
    (outside / "secret").write_text("x")
    (package / link).symlink_to(outside if link == "dir" else outside / "secret")
    found = problem(package, kind, asked)
    assert found.reason is Reason.ESCAPING_PATH
    assert str(outside) in found.message


def test_a_link_to_nothing_is_a_missing_file(package: Path) -> None:
    (package / "broken").symlink_to("gone")
    assert problem(package, "file", "broken").reason is Reason.MISSING_FILE


def test_what_is_there_but_no_file_is_not_suggested_for_itself(package: Path) -> None:
    (package / "loop.h").symlink_to("loop.h")
    (package / "dangling.h").symlink_to("nowhere")
    os.mkfifo(package / "pipe.h")
    (package / "folder.h").mkdir()
    files = PackageFiles(package, "p", "workspace")
    for name, said in (
        ("loop.h", "'loop.h' is a link to nothing"),
        ("dangling.h", "'dangling.h' is a link to nothing"),
        ("pipe.h", "'pipe.h' is a device or a pipe, expected a file"),
        ("folder.h", "'folder.h' is a directory, expected a file"),
    ):
        with pytest.raises(AttributeProblem) as caught:
            files.file(name)
        assert (caught.value.message, caught.value.hint) == (said, "")
