"""The directories of a build on this machine: the roots of ``Source`` paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kabuild.base.errors import Reason, UsageError
from kabuild.loading.kind import kind_of
from kabuild.model.action import Root

if TYPE_CHECKING:
    from kabuild.loading.repository import Repository

BUILD_FILE = "BUILD.toml"
WORKSPACE_FILE = "WORKSPACE.toml"
PLATFORM_FILE = "platform.toml"
PEAKS_FILE = "peaks.toml"
SHARED = ("rules", "toolchains")


def find_workspace(start: Path) -> Path:
    """The nearest directory at or above ``start`` with a WORKSPACE.toml, resolved.

    Raises UsageError(NO_WORKSPACE).
    """
    here = start.resolve()
    for directory in (here, *here.parents):
        file = directory / WORKSPACE_FILE
        if file.is_file():
            return directory
        if kind := kind_of(file):
            raise UsageError(
                Reason.NO_WORKSPACE,
                f"{file} is {kind}, not a file",
                hint=f"put a file in its place: {WORKSPACE_FILE} makes a directory a workspace",
            )
    raise UsageError(
        Reason.NO_WORKSPACE,
        f"no {WORKSPACE_FILE} in {here} or above it",
        hint="change into a workspace, or make one: kabuild init my_kernels",
    )


def kabuild_root() -> Path:
    """The directory of the ``kabuild`` package."""
    return Path(__file__).parents[1]


def builtin_root() -> Path:
    """The parent of the ``rules`` and ``toolchains`` that ship with kabuild.

    Installed from a wheel they lie inside the package; in a checkout, beside it.
    """
    package = kabuild_root()
    shipped = package / "builtin"
    return shipped if shipped.is_dir() else package.parent


def source_roots(workspace: Path, repositories: Iterable[Repository] = ()) -> Mapping[Root, Path]:
    """The directory of each root of a ``Source``; ``user`` paths are absolute."""
    return {
        "workspace": workspace,
        "builtin": builtin_root(),
        "kabuild": kabuild_root(),
        "user": Path("/"),
        **{repository.root: repository.path for repository in repositories},
    }
