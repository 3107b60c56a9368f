"""The loader: packages, targets and rules of one workspace, each read when first needed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from kabuild.base.errors import KabuildError, LoadError, Position, Reason, UsageError
from kabuild.base.suggest import suggest
from kabuild.loading.attributes import AttributeReader
from kabuild.loading.build_file import Package, read_package
from kabuild.loading.package_files import PackageFiles
from kabuild.loading.roots import BUILD_FILE, SHARED, builtin_root
from kabuild.loading.rule_index import RuleIndex
from kabuild.loading.toml_file import read_toml
from kabuild.loading.walk import walk
from kabuild.loading.workspace import Workspace
from kabuild.model.artifact import Root
from kabuild.model.label import Label
from kabuild.model.target import Target
from kabuild.rule.attr import PathStep
from kabuild.rule.rule import Rule


class Loader:
    """Reads packages lazily and each once.

    A package is looked up in the workspace; where that has none, ``//rules/...`` and
    ``//toolchains/...`` are also looked up in ``builtin``, which ships with kabuild.
    """

    def __init__(self, workspace: Workspace, builtin: Path | None = None) -> None:
        self.workspace = workspace
        self.builtin = builtin or builtin_root()
        roots = dict.fromkeys((workspace.root / "rules", self.builtin / "rules"))
        self.rules = RuleIndex(tuple(roots))
        self._packages: dict[str, Package] = {}
        self._files: set[Path] = set()

    def package(self, name: str, position: Position | None = None) -> Package:
        """The package ``name``, which ``position`` asks for; None: the command line.

        Raises UNKNOWN_PACKAGE (LoadError, or UsageError from the command line) and
        whatever is wrong in its BUILD.toml (LoadError).
        """
        if name not in self._packages:
            found = self._locate(name)
            if found is None:
                raise self._unknown_package(name, position)
            self._packages[name] = self._read(name, *found)
        return self._packages[name]

    def has_package(self, name: str) -> bool:
        """Whether there is a package ``name``; reads nothing."""
        return name in self._packages or self._locate(name) is not None

    def target(self, label: Label, position: Position | None = None) -> Target:
        """The target ``label``, or the one that has the sub-target ``label``.

        Raises UNKNOWN_TARGET as ``package`` raises UNKNOWN_PACKAGE.
        """
        package = self.package(label.package, position)
        found = package.find(label.in_trial(1).name)
        if found is None:
            names = package.names()
            raise _unknown(
                Reason.UNKNOWN_TARGET,
                f"no target ':{label.name}' in //{label.package}",
                position,
                suggest(f":{label.name}", [f":{name}" for name in names])
                or f"it has: {', '.join(f':{name}' for name in package.targets) or 'none'}",
            )
        return found

    def rule(self, target: Target) -> Rule:
        """The rule of a loaded target."""
        return self.rules.rule(target.kind)

    def files(self) -> frozenset[Path]:
        """The declarations and rule files that were read."""
        return self.rules.files() | self._files

    def position(self, target: Target, *path: PathStep) -> Position:
        """Where a part of a target's declaration stands; reads its BUILD.toml again."""
        found = self._locate(target.label.package)
        if found is None:
            return target.position
        file = read_toml(found[1] / BUILD_FILE, target.position.file)
        tables = file.values.get(target.kind, [])
        for index, table in enumerate(tables):
            if table.get("name") == target.label.name:
                return file.position(target.kind, index, *path)
        return target.position

    def packages_below(self, name: str) -> Iterator[str]:
        """The workspace's packages at and below ``name``, sorted.

        Not looked into: dot directories, ``out`` at the root, virtual environments, and
        other workspaces.
        """
        root = str(self.workspace.root)
        for directory, is_package in walk(root, f"{root}/{name}" if name else root):
            if is_package:
                yield "" if directory == root else os.path.relpath(directory, root)

    def siblings(self, name: str) -> tuple[str, ...]:
        """The packages that lie directly below the directory ``name``, sorted."""
        found: set[str] = set()
        for _, root in self._search(f"{name}/x" if name else "x"):
            if (root / name).is_dir():
                for entry in sorted((root / name).iterdir()):
                    path = f"{name}/{entry.name}" if name else entry.name
                    if (entry / BUILD_FILE).is_file():
                        found.add(path)
        return tuple(sorted(found))

    def _search(self, name: str) -> Iterator[tuple[Root, Path]]:
        yield "workspace", self.workspace.root
        if name.partition("/")[0] in SHARED and self.builtin != self.workspace.root:
            yield "builtin", self.builtin

    def _locate(self, name: str) -> tuple[Root, Path] | None:
        """Root and directory of a package."""
        for root, base in self._search(name):
            if (base / name / BUILD_FILE).is_file():
                return root, base / name
        return None

    def _read(self, name: str, root: Root, directory: Path) -> Package:
        path = directory / BUILD_FILE
        self._files.add(path)
        shown = path.relative_to(self.workspace.root) if root == "workspace" else path
        try:
            file = read_toml(path, str(shown))
        except OSError as error:
            raise LoadError(
                Reason.MISSING_FILE,
                f"cannot be read: {error.strerror}",
                position=Position(str(shown)),
            ) from None
        files = PackageFiles(directory, name, root)
        return read_package(file, name, root, AttributeReader(files, name), self.rules.rule)

    def _unknown_package(self, name: str, position: Position | None) -> KabuildError:
        """Meant is a target of the parent, a package beside it, or a parent that is mistyped."""
        parent, _, last = name.rpartition("/")
        declared = self._packages.get(parent)
        hint = f"did you mean '//{parent}:{last}'?" if declared and declared.find(last) else ""
        hint = hint or suggest(f"//{name}", [f"//{sibling}" for sibling in self.siblings(parent)])
        if not hint:
            hint = suggest(f"//{name}", [f"//{known}" for known in self.packages_below("")])
        message = f"no package '//{name}': {name or '.'}/{BUILD_FILE} does not exist"
        return _unknown(Reason.UNKNOWN_PACKAGE, message, position, hint)


def _unknown(reason: Reason, message: str, position: Position | None, hint: str) -> KabuildError:
    """A mistake in a BUILD.toml where there is a position, else on the command line."""
    if position is None:
        return UsageError(reason, message, hint=hint)
    return LoadError(reason, message, position=position, hint=hint)
