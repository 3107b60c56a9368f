"""Outputs that a build would read: refused before they replace a source."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from kabuild.base.errors import KabuildError, Reason, UsageError
from kabuild.base.fs import descriptor_of
from kabuild.cli.types import is_same_file
from kabuild.loading import Loader, find_workspace, load_workspace
from kabuild.loading.roots import BUILD_FILE, WORKSPACE_FILE
from kabuild.model.action import Source
from kabuild.pipeline import Plan
from kabuild.watched import all_paths_of


def check_outputs(planned: Plan, outputs: Mapping[str, Path | None]) -> None:
    """Refuse ``outputs``, by flag, that a planned build reads, or other targets of its workspace.

    Raises UsageError.
    """
    named = {
        flag: path
        for flag, path in outputs.items()
        if path is not None and descriptor_of(path) is None
    }
    for read in all_paths_of(planned) if named else ():
        for flag, path in named.items():
            if is_same_file(path, read):
                what = f"{flag}: '{path}' is a file that the build reads"
                raise UsageError(Reason.BAD_FLAG, what, hint="name another file")
            if read.is_dir() and _is_below(path, read):
                what = f"{flag}: '{path}' lies in a directory that the build reads: {read}"
                raise UsageError(Reason.BAD_FLAG, what, hint="name a file elsewhere")
    for flag, path in named.items():
        check_undeclared(planned.loaded.loader, flag, path)


def check_no_source(flag: str, path: Path | None) -> None:
    """Refuse an output that is a source of the workspace around it, if there is one.

    For commands without a plan. Raises UsageError.
    """
    if path is None or not path.is_file():
        return
    try:
        workspace = load_workspace(find_workspace(Path(os.path.realpath(path)).parent))
    except (KabuildError, OSError):
        return
    check_undeclared(Loader(workspace), flag, path)


def check_undeclared(loader: Loader, flag: str, path: Path) -> None:
    """Refuse an output that is a file of a package of the workspace. Raises UsageError."""
    root, file = (Path(os.path.realpath(item)) for item in (loader.workspace.root, path))
    if not file.is_file() or not file.is_relative_to(root):
        return
    named = file.name in {BUILD_FILE, WORKSPACE_FILE}
    for above in file.relative_to(root).parents:
        name = "" if above == Path() else above.as_posix()
        if named or ((root / above / BUILD_FILE).is_file() and file in _sources(loader, name)):
            what = f"{flag}: '{path}' is a source of the workspace"
            raise UsageError(Reason.BAD_FLAG, what, hint="name another file")


def _sources(loader: Loader, package: str) -> set[Path]:
    """The real paths of the files that a package declares; none if it is broken."""
    try:
        targets = loader.package(package).targets.values()
        found = [source for target in targets for source in _in(list(target.attrs.values()))]
    except KabuildError:
        return set()
    root = loader.workspace.root
    return {Path(os.path.realpath(root / item.path)) for item in found if item.root == "workspace"}


def _in(value: object) -> Iterator[Source]:
    """The sources in an attribute's value."""
    if isinstance(value, Source):
        yield value
    elif isinstance(value, Mapping):
        yield from _in([*value.values()])
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _in(item)


def _is_below(path: Path, directory: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(directory))
