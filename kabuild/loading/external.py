"""Packages of external repositories: from a lock to targets. Runs no benchmark code.

A target's attributes are read from the lock, and its original files are compared with it, when
their attributes are needed: a query for labels needs neither.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from kabuild.base.errors import KabuildError, LoadError, LoadErrors, Position, Reason, UsageError
from kabuild.base.suggest import suggest
from kabuild.loading.attributes import AttributeReader
from kabuild.loading.build_file import Package
from kabuild.loading.checkout import Checkout
from kabuild.loading.import_lock import ImportLock, LockedTask, read_import_lock
from kabuild.loading.platform_index import PlatformIndex
from kabuild.loading.repository import Repository
from kabuild.loading.rule_index import RuleIndex
from kabuild.loading.workspace import Workspace
from kabuild.model.action import Source
from kabuild.model.label import Label, repository_of, show_package
from kabuild.model.target import Target
from kabuild.rule.attr import AttributeProblem, PathStep
from kabuild.rule.rule import Rule

FindShared = Callable[[str], Source | None]
"""Finds a file or directory below ``rules``: the workspace's own, or kabuild's."""


class LazyAttrs(Mapping[str, Any]):
    """The attributes of a target, read on first use. Reading them may raise LoadError."""

    def __init__(self, read: Callable[[], Mapping[str, Any]]) -> None:
        self._read = cache(read)

    def __getitem__(self, name: str) -> Any:
        return self._read()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


class ExternalPackages:
    """The packages of a workspace's external repositories, one for each task of a lock."""

    def __init__(
        self,
        workspace: Workspace,
        rules: RuleIndex,
        shared: FindShared,
        platforms: PlatformIndex,
    ) -> None:
        self._workspace = workspace
        self._rules = rules
        self._shared = shared
        self._platforms = platforms
        self._locks: dict[str, ImportLock] = {}

    def lock(self, name: str, position: Position | None = None) -> ImportLock:
        """The lock of the repository ``name``, which is referenced at ``position``.

        Raises UNKNOWN_PACKAGE, as UsageError without a position, and LoadError(BAD_LOCK).
        """
        if name in self._locks:
            return self._locks[name]
        repository = self._workspace.repositories.get(name)
        if repository is None:
            known = [f"@{other}" for other in self._workspace.repositories]
            hint = suggest(f"@{name}", known) or "to add one: kabuild import ADAPTER PATH"
            what = f"no repository '@{name}' in {self._workspace.file.shown}"
            raise _unknown(what, hint, position)
        try:
            lock = read_import_lock(self._workspace.root / repository.lock, repository.lock)
        except FileNotFoundError:
            hint = f"write it: kabuild import {repository.adapter} {repository.shown}"
            what = f"the repository '@{name}' has no lock: {repository.lock} does not exist"
            raise LoadError(
                Reason.MISSING_FILE, what, position=repository.position, hint=hint
            ) from None
        self._locks[name] = lock
        return lock

    def has(self, package: str) -> bool:
        """Whether the package exists."""
        try:
            lock = self.lock(repository_of(package))
        except KabuildError:
            return False
        inner = _inner(package)
        return lock.has(inner) and inner not in lock.left_out()

    def package(self, package: str, position: Position | None = None) -> Package:
        """The package of one task.

        Raises UNKNOWN_PACKAGE if there is no such task, or if it was not imported.
        """
        lock, inner = self.lock(repository_of(package), position), _inner(package)
        if not lock.has(inner):
            shown = show_package(package)
            root = f"@{repository_of(package)}//"
            hint = suggest(shown, [root + name for name in (*lock.names(), *lock.left_out())])
            if self.below(package):
                hint = f"did you mean '{shown.removesuffix('/')}/...'?"
            raise _unknown(f"no task '{shown}' in {lock.shown}", hint, position)
        task = lock.task(inner)
        if task.left_out:
            what = f"{show_package(package)} was not imported: {task.left_out.reason}"
            raise _unknown(what, task.left_out.why, position)
        repository = self._workspace.repositories[repository_of(package)]
        target = self._target(repository, task)
        return Package(package, repository.root, {target.label.name: target}, lock.shown)

    def below(self, package: str) -> tuple[str, ...]:
        """The packages at and below ``package``, sorted."""
        lock, inner = self.lock(repository_of(package)), _inner(package)
        found = (f"@{repository_of(package)}/{name}" for name in lock.names())
        return tuple(name for name in found if not inner or f"{name}/".startswith(f"{package}/"))

    def left_out(self, package: str) -> tuple[str, ...]:
        """The tasks at and below ``package`` that were not imported."""
        lock, inner = self.lock(repository_of(package)), _inner(package)
        prefix = f"{inner}/" if inner else ""
        return tuple(n for n in lock.left_out() if f"{n}/".startswith(prefix))

    def files(self) -> frozenset[Path]:
        """The locks that were read."""
        return frozenset(self._workspace.root / lock.shown for lock in self._locks.values())

    def originals(self, package: str) -> tuple[Path, ...]:
        """The original files of one task."""
        repository = self._workspace.repositories[repository_of(package)]
        task = self.lock(repository.name).task(_inner(package))
        return tuple(repository.path / path for path in task.files)

    def _target(self, repository: Repository, task: LockedTask) -> Target:
        rule = self._rules.rule(task.kind, task.position)
        label = Label(f"@{repository.name}/{task.name}", task.name.rpartition("/")[2])

        def read() -> Mapping[str, Any]:
            check_originals(repository, task)
            files = ImportedFiles(repository, task, self._shared)
            reader = AttributeReader(files, label.package, self._platforms)
            return _attributes(task, rule, reader)

        return Target(label, rule.kind, LazyAttrs(read), task.position, rule.parts, task.tags)


class ImportedFiles:
    """Turns paths of a lock into sources: original files, and ``//rules/...``, which is kabuild's.

    Raises AttributeProblem.
    """

    def __init__(self, repository: Repository, task: LockedTask, shared: FindShared) -> None:
        self._repository = repository
        self._task = task
        self._shared = shared

    def exists(self, path: str) -> bool:
        """Whether the file exists."""
        if path.startswith("//"):
            return self._shared(path) is not None
        return path in self._task.files

    def matches(self, pattern: str) -> bool:
        """Whether the file exists; a lock has no globs."""
        return self.exists(pattern)

    def file(self, path: str, at: tuple[PathStep, ...] = ()) -> Source:
        """The file at ``path``."""
        found = self._shared(path) if path.startswith("//") else None
        if found is None and path in self._task.files:
            found = Source(path, self._repository.root)
        if found is None:
            what = f"no file '{path}' in the task '{self._task.name}'"
            raise AttributeProblem(what, at, reason=Reason.MISSING_FILE)
        return found

    def tree(self, path: str, at: tuple[PathStep, ...] = ()) -> Source:
        """The directory at ``path``, one of kabuild's own."""
        return self.file(path, at)

    def files(self, patterns: Sequence[str]) -> tuple[Source, ...]:
        """The files at all paths, sorted, each once."""
        return tuple(sorted({self.file(path, (i,)) for i, path in enumerate(patterns)}))


def check_originals(repository: Repository, task: LockedTask) -> None:
    """Compare a task's files with the lock. Raises LoadErrors that name differing files."""
    errors = []
    if not repository.path.is_dir():
        raise LoadError(
            Reason.MISSING_FILE,
            f"no checkout of '@{repository.name}' at {repository.shown}",
            position=repository.position,
            hint="clone it there, or correct the path in WORKSPACE.toml",
        )
    checkout = Checkout(repository.path)
    for path, sha256 in task.files.items():
        try:
            found = hashlib.sha256(checkout.read(path)).hexdigest()
        except OSError as error:
            problem = f"{repository.shown}/{path} cannot be read: {error.strerror or error}"
        else:
            if found == sha256:
                continue
            problem = (
                f"{repository.shown}/{path} changed since it was imported\n"
                f"  specified: sha256:{sha256}\n  got:       sha256:{found}"
            )
        at = f" at commit {repository.commit[:12]}" if repository.commit else ""
        errors.append(
            LoadError(
                Reason.MISSING_FILE,
                problem,
                position=task.position,
                hint=f"restore the checkout{at}, or import it again: "
                f"kabuild import {repository.adapter} {repository.shown}",
            )
        )
    if errors:
        raise LoadErrors.combine(errors)


def _attributes(task: LockedTask, rule: Rule, reader: AttributeReader) -> Mapping[str, Any]:
    """All attributes of the rule, as a BUILD.toml's. Raises LoadErrors at the task's line."""
    problems: list[AttributeProblem] = []
    for name in task.attrs.keys() - rule.attrs.keys():
        what = f"{rule.kind} has no attribute '{name}', which {task.name} was imported with"
        hint = "import it again with this kabuild"
        problems.append(AttributeProblem(what, hint=hint, reason=Reason.UNKNOWN_ATTRIBUTE))
    attrs: dict[str, Any] = {}
    for name, attribute in rule.attrs.items():
        try:
            if name in task.attrs:
                attrs[name] = reader.read(attribute, task.attrs[name])
            elif attribute.required:
                raise AttributeProblem(f"lacks the attribute '{name}'")
            else:
                attrs[name] = reader.default(attribute)
        except AttributeProblem as problem:
            what = f"attribute '{name}': {problem.message}"
            problems.append(AttributeProblem(what, hint=problem.hint, reason=problem.reason))
    if not problems:
        try:
            rule.check(attrs)
        except AttributeProblem as problem:
            problems.append(problem)
    if problems:
        raise LoadErrors.combine(
            [LoadError(p.reason, p.message, position=task.position, hint=p.hint) for p in problems]
        )
    return attrs


def _inner(package: str) -> str:
    """A package's path below its repository."""
    return package.partition("/")[2]


def _unknown(message: str, hint: str, position: Position | None) -> KabuildError:
    if position is None:
        return UsageError(Reason.UNKNOWN_PACKAGE, message, hint=hint)
    return LoadError(Reason.UNKNOWN_PACKAGE, message, position=position, hint=hint)
