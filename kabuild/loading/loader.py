"""The loader: packages, targets and rules of one workspace, read on demand."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kabuild.base.errors import (
    KabuildError,
    LoadError,
    LoadErrors,
    Position,
    Reason,
    UsageError,
)
from kabuild.base.fs import is_inside
from kabuild.base.listing import counted
from kabuild.base.printing import escaped
from kabuild.base.suggest import suggest, suggest_path
from kabuild.loading.attributes import AttributeReader
from kabuild.loading.build_file import Package, read_package
from kabuild.loading.external import ExternalPackages
from kabuild.loading.package_files import PackageFiles
from kabuild.loading.platform_index import PlatformIndex
from kabuild.loading.roots import BUILD_FILE, SHARED, builtin_root
from kabuild.loading.rule_index import RuleIndex
from kabuild.loading.toml_file import read_toml
from kabuild.loading.walk import walk
from kabuild.loading.workspace import Workspace
from kabuild.model.action import Root, Source
from kabuild.model.label import Label, names_package, repository_of, show_package
from kabuild.model.platform import PLATFORMS
from kabuild.model.target import Target
from kabuild.rule.attr import PathStep
from kabuild.rule.rule import Rule


class Loader:
    """Reads each package on demand, once.

    A package is looked up in the workspace; ``//rules/...`` and ``//toolchains/...`` also in
    ``builtin``, which ships with kabuild. Packages of external repositories come from their locks.
    Rules are code that runs here: without ``own_rules`` the workspace's are not imported, and
    packages that need them are broken.

    Attributes:
        platforms: where actions may run.
        left_out: by directory, why a wildcard skipped it.
        unreadable: those of them that this user cannot read.
        notes: by pattern, a note about tasks that were not imported.
    """

    def __init__(
        self, workspace: Workspace, builtin: Path | None = None, *, own_rules: bool = True
    ) -> None:
        self.workspace = workspace
        self.builtin = builtin or builtin_root()
        roots = dict.fromkeys((workspace.root / "rules", self.builtin / "rules"))
        self.rules = RuleIndex(tuple(roots) if own_rules else (self.builtin / "rules",))
        roots = dict.fromkeys((workspace.root / PLATFORMS, self.builtin / PLATFORMS))
        self.platforms = PlatformIndex(tuple(roots))
        self._packages: dict[str, Package] = {}
        self._files: set[Path] = set()
        self.external = ExternalPackages(workspace, self.rules, self._shared, self.platforms)
        self.left_out: dict[str, str] = {}
        self.unreadable: set[str] = set()
        self.notes: dict[str, str] = {}

    def package(self, name: str, position: Position | None = None) -> Package:
        """The package ``name``, which ``position`` asks for; None: the command line.

        Raises UNKNOWN_PACKAGE (LoadError, or UsageError from the command line) and
        whatever is wrong in its BUILD.toml (LoadError).
        """
        if name not in self._packages and repository_of(name):
            self._packages[name] = self.external.package(name, position)
        elif name not in self._packages:
            found = self._locate(name)
            if found is None:
                raise self._unknown_package(name, position)
            self._packages[name] = self._read(name, *found)
        return self._packages[name]

    def add(self, package: Package) -> None:
        """Add a package that no file declares."""
        self._packages[package.name] = package

    def has_package(self, name: str) -> bool:
        """Whether the package ``name`` exists; reads nothing."""
        if repository_of(name):
            return self.external.has(name)
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
                f"no target ':{label.name}' in {show_package(label.package)}",
                position,
                suggest(f":{label.name}", [f":{name}" for name in names])
                or f"it has: {', '.join(f':{name}' for name in package.targets) or 'none'}",
            )
        return found

    def rule(self, target: Target) -> Rule:
        """The rule of a loaded target."""
        return self.rules.rule(target.kind)

    def check(self, labels: Iterable[Label]) -> None:
        """Read the attributes of external targets.

        Raises LoadErrors with all original files that changed or are missing.
        """
        errors: list[LoadError] = []
        for label in labels:
            try:
                if repository_of(label.package):
                    len(self.target(label).attrs)
            except LoadError as error:
                errors.append(error)
        if errors:
            raise LoadErrors.combine(errors)

    def files(self) -> frozenset[Path]:
        """The BUILD.toml and rule files that were read."""
        return self.rules.files() | self._files | self.external.files()

    def position(self, target: Target, *path: PathStep) -> Position:
        """The position of a part of a target's declaration; reads its BUILD.toml again."""
        external = repository_of(target.label.package)
        found = None if external else self._locate(target.label.package)
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
        if repository_of(name):
            yield from self._external_below(name)
            return
        root = str(self.workspace.root)
        start = f"{root}/{name}" if name else root
        for directory, is_package in walk(root, start, self._leave_out):
            name = "" if directory == root else os.path.relpath(directory, root)
            if is_package and names_package(name):
                yield name
            elif is_package:
                self.left_out[name] = f"skipped {escaped(name)}: it is not a valid package name"

    def _external_below(self, name: str) -> Iterator[str]:
        if absent := self.external.left_out(name):
            self.notes[name] = (
                f"not imported: {counted(len(absent), 'task')} of {show_package(name)}; "
                f"kabuild import --list @{repository_of(name)} says why"
            )
        yield from self.external.below(name)

    def _shared(self, path: str) -> Source | None:
        """A file or directory ``//rules/...``: the workspace's, or else kabuild's."""
        file = path.removeprefix("//")
        if not file.startswith("rules/") or not is_inside(file):
            return None
        for root, base in self._search(file):
            if (base / file).exists():
                return Source(file, root)
        return None

    def _leave_out(self, directory: str, error: OSError) -> None:
        shown = os.path.relpath(directory, self.workspace.root)
        self.left_out[shown] = f"skipped {escaped(shown)}: {error.strerror}"
        self.unreadable.add(shown)

    def siblings(self, name: str) -> tuple[str, ...]:
        """The packages directly below the directory ``name``, sorted."""
        found: set[str] = set()
        for _, root in self._search(f"{name}/x" if name else "x"):
            if (root / name).is_dir():
                for entry in sorted((root / name).iterdir()):
                    path = f"{name}/{entry.name}" if name else entry.name
                    if names_package(path) and (entry / BUILD_FILE).is_file():
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
        file = read_toml(path, str(shown))
        files = PackageFiles(directory, name, root)
        reader = AttributeReader(files, name, self.platforms)
        return read_package(file, name, root, reader, self.rules.rule)

    def _unknown_package(self, name: str, position: Position | None) -> KabuildError:
        """A hint: a target of the parent, packages below, one beside it, or a mistyped parent."""
        parent, _, last = name.rpartition("/")
        if any((base / name).is_file() for _, base in self._search(name)):
            above = next(self._packages_above(name), None)
            hint = "list the targets: kabuild query '//...'"
            if above is not None:
                hint = f"did you mean '//{above}'? Pass solutions as --solution={name}"
            message = f"'//{name}' is a file; a label names a package or a target"
            return _unknown(Reason.UNKNOWN_PACKAGE, message, position, hint)
        declared = self._packages.get(parent)
        hint = f"did you mean '//{parent}:{last}'?" if declared and declared.find(last) else ""
        if not hint and any(self.packages_below(name)):
            hint = f"did you mean '//{name}/...'?"
        for known in () if hint else (self.siblings(parent), self.packages_below("")):
            hint = hint or suggest_path(f"//{name}", [f"//{package}" for package in known])
        hint = hint or "list the targets: kabuild query '//...'"
        message = f"no package '//{name}': {name or '.'}/{BUILD_FILE} does not exist"
        return _unknown(Reason.UNKNOWN_PACKAGE, message, position, hint)

    def _packages_above(self, name: str) -> Iterator[str]:
        """The packages in the directories above ``name``, the nearest first."""
        while name:
            name = name.rpartition("/")[0]
            if name and self.has_package(name):
                yield name


def _unknown(reason: Reason, message: str, position: Position | None, hint: str) -> KabuildError:
    """An error in a BUILD.toml if there is a position, else on the command line."""
    if position is None:
        return UsageError(reason, message, hint=hint)
    return LoadError(reason, message, position=position, hint=hint)
