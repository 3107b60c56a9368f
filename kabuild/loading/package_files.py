"""The files of one package, which must exist and lie inside it; and globs over them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from kabuild.base.errors import Reason
from kabuild.base.fs import is_inside
from kabuild.base.suggest import suggest
from kabuild.loading.kind import kind_of
from kabuild.loading.roots import BUILD_FILE, WORKSPACE_FILE
from kabuild.model.action import Root, Source
from kabuild.rule.attr import AttributeProblem, PathStep

MOST_IN_NAME, MOST_IN_ALL = 255, 2000
"""Bytes: what Linux allows in a name, and half of what it allows in a path."""


class PackageFiles:
    """Turns paths of a BUILD.toml into sources. Raises AttributeProblem.

    ``directory`` is the package's, ``package`` its path below ``root``.
    """

    def __init__(self, directory: Path, package: str, root: Root) -> None:
        self._directory = directory
        self._package = package
        self._root = root

    def exists(self, path: str) -> bool:
        """Whether the package has a file or directory at ``path``."""
        return (self._directory / path).exists()

    def matches(self, pattern: str) -> bool:
        """Whether a path exists, or a glob finds anything."""
        return bool(glob(self._directory, pattern)) if is_glob(pattern) else self.exists(pattern)

    def file(self, path: str, at: tuple[PathStep, ...] = ()) -> Source:
        """The file at ``path``; ``at`` leads to it in the attribute, for errors."""
        full = self._checked(path, at)
        if full.is_file():
            return self._source(path)
        if full.is_dir():
            raise AttributeProblem(f"'{path}' is a directory, expected a file", at)
        raise self._missing("file", path, at)

    def tree(self, path: str, at: tuple[PathStep, ...] = ()) -> Source:
        """The directory at ``path``; no link in it may lead out of the package."""
        full = self._checked(path, at)
        if full.is_dir():
            for link in _links(str(full)):
                self._check_link(Path(link), os.path.relpath(link, self._directory), at)
            return self._source(path)
        if full.exists():
            raise AttributeProblem(f"'{path}' is a file, expected a directory", at)
        raise self._missing("directory", path, at)

    def files(self, patterns: Sequence[str]) -> tuple[Source, ...]:
        """The files of all paths and globs, sorted, each once."""
        found: set[Source] = set()
        for index, pattern in enumerate(patterns):
            if not is_glob(pattern):
                found.add(self.file(pattern, (index,)))
                continue
            self._check_path(pattern, (index,))
            paths = glob(self._directory, pattern)
            if not paths:
                raise AttributeProblem(
                    f"no file matches '{pattern}'", (index,), reason=Reason.MISSING_FILE
                )
            found.update(self.file(path, (index,)) for path in paths)
        return tuple(sorted(found))

    def _source(self, path: str) -> Source:
        return Source(f"{self._package}/{path}" if self._package else path, self._root)

    def _checked(self, path: str, at: tuple[PathStep, ...]) -> Path:
        self._check_path(path, at)
        full = self._directory / path
        self._check_link(full, path, at)
        return full

    def _check_path(self, path: str, at: tuple[PathStep, ...]) -> None:
        if not path:
            raise AttributeProblem("the path is empty", at, reason=Reason.MISSING_FILE)
        if not is_inside(path):
            raise AttributeProblem(
                f"'{path}' leaves the package //{self._package}",
                at,
                "a target takes files of its own package; depend on a target of the other package",
                reason=Reason.ESCAPING_PATH,
            )
        parts = path.split("/")
        if any(part in {"", "."} for part in parts):
            raise AttributeProblem(f"'{path}' is not a plain path", at, "write it as a/b/c")
        if len(path) > MOST_IN_ALL or any(len(part.encode()) > MOST_IN_NAME for part in parts):
            raise AttributeProblem(
                f"'{path[:60]}...' is too long for a path",
                at,
                f"a name has at most {MOST_IN_NAME} bytes, a path at most {MOST_IN_ALL}",
                reason=Reason.MISSING_FILE,
            )

    def _check_link(self, full: Path, path: str, at: tuple[PathStep, ...]) -> None:
        """Refuse a path that a symbolic link leads out of the package."""
        home = os.path.realpath(self._directory)
        real = os.path.realpath(full)
        if real != home and not real.startswith(f"{home}{os.sep}"):
            raise AttributeProblem(
                f"'{path}' is a link out of the package //{self._package}, to {real}",
                at,
                "put a copy into the package: the target of a link is not hashed",
                reason=Reason.ESCAPING_PATH,
            )

    def _missing(self, what: str, path: str, at: tuple[PathStep, ...]) -> AttributeProblem:
        full = self._directory / path
        if kind := kind_of(full):
            wanted = f", expected a {what}" if full.exists() else ""
            said = f"'{path}' is {kind}{wanted}"
            return AttributeProblem(said, at, reason=Reason.MISSING_FILE)
        names = [entry.name for entry in full.parent.iterdir()] if full.parent.is_dir() else []
        return AttributeProblem(
            f"no {what} '{path}' in //{self._package}",
            at,
            suggest(full.name, names),
            reason=Reason.MISSING_FILE,
        )


def is_glob(path: str) -> bool:
    """Whether ``path`` is a pattern, not a plain path."""
    return "*" in path


def glob(directory: Path, pattern: str) -> list[str]:
    """Files below ``directory`` that match, as sorted relative paths.

    ``*`` matches anything within one name, ``**`` any number of directories, also none. Wildcards
    do not match names that start with a dot, nor files of packages inside this one.
    """
    return sorted(set(_walk(str(directory), "", pattern.split("/"))))


def _walk(directory: str, prefix: str, parts: list[str]) -> Iterator[str]:
    head, *rest = parts
    if head == "**" and rest:
        yield from _walk(directory, prefix, rest)
    with os.scandir(directory) as entries:
        found = [entry for entry in entries if _matches(head, entry.name)]
    for entry in found:
        path = f"{prefix}{entry.name}"
        if entry.is_dir():
            if _is_package(entry.path):
                continue
            if head == "**":
                yield from _walk(entry.path, f"{path}/", parts)
            elif rest:
                yield from _walk(entry.path, f"{path}/", rest)
        elif not rest and entry.is_file():
            yield path


def _matches(pattern: str, name: str) -> bool:
    if "*" not in pattern:
        return name == pattern
    if name.startswith(".") and not pattern.startswith("."):
        return False
    text = ".*".join(re.escape(part) for part in re.split(r"\*+", pattern))
    return re.fullmatch(text, name) is not None


def _is_package(directory: str) -> bool:
    return any((Path(directory) / name).is_file() for name in (BUILD_FILE, WORKSPACE_FILE))


def _links(directory: str) -> Iterator[str]:
    """The symbolic links of a tree, without following them."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_symlink():
                yield entry.path
            elif entry.is_dir():
                yield from _links(entry.path)
