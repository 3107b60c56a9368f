"""Capturing: every task of a checkout runs once in a sandbox, and its facts become a lock."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from kabuild.base.errors import InfraError, Interrupted, Position, Reason
from kabuild.builder import Builder
from kabuild.execution.isolation import require_sandbox
from kabuild.imports.adapter import UNREADABLE, Adapter, Listed, unreadable
from kabuild.imports.checkout import check_commit
from kabuild.imports.facts import Facts, left_out, read_facts
from kabuild.imports.git_index import changed_files
from kabuild.imports.lock_text import KIND, lock_text, task_text
from kabuild.loading import Loader, Package
from kabuild.loading.checkout import Checkout
from kabuild.loading.import_lock import LeftOut
from kabuild.loading.repository import Repository
from kabuild.loading.request import Request
from kabuild.loading.workspace import Workspace
from kabuild.model.action import Source
from kabuild.model.label import Label, repository_of
from kabuild.model.result import Outcome, Settled
from kabuild.model.target import Target
from kabuild.pipeline import Summary, plan, settle

CAPTURE = "capture"
FACTS = "facts.json"
FAILED = "CAPTURE_FAILED"
_MOST_FACTS = 4 << 20


@dataclass(frozen=True)
class Captured:
    """The result of an import.

    Attributes:
        text: the lock.
        imported: how many tasks have a target.
        left_out: by task, the class of the failure and a sentence.
        commit: the checkout's; ``""`` if unknown.
        changed: files of tasks that are not as that commit has them.
    """

    text: str
    imported: int
    left_out: Mapping[str, LeftOut] = field(hash=False)
    commit: str = ""
    changed: tuple[str, ...] = ()

    @property
    def classes(self) -> Mapping[str, int]:
        """How many tasks were left out, by class."""
        return Counter(absent.reason for absent in self.left_out.values())


def capture(
    workspace: Workspace,
    repository: Repository,
    adapter: Adapter,
    request: Request,
    builds: Builder,
) -> Captured:
    """Run all captures that are not cached; returns the results.

    ``workspace`` has the repository. Raises UsageError for another checkout, LoadError for one of
    another commit, Interrupted, and InfraError if the machine failed.
    """
    require_sandbox("a benchmark's code", waived=not request.hermetic)
    commit = check_commit(repository)
    listed = adapter.tasks(repository.path)
    digests = _digests(repository, listed)
    loader = Loader(workspace)
    targets = [
        _target(repository, adapter, task)
        for task in listed
        if not isinstance(digests[task.name], LeftOut)
    ]
    settled = _run(loader, targets, request, builds).settled if targets else {}
    known = loader.rules.rule(KIND).attrs
    texts, absent = [], {}
    for task in listed:
        files = digests[task.name]
        if isinstance(files, LeftOut):
            text, why = _told(task, {}, files)
        else:
            facts = _facts(settled[_label(repository, task)], builds, known)
            text, why = _told(task, files, facts)
        texts.append(text)
        if why:
            absent[task.name] = why
    return Captured(
        lock_text(adapter, commit, texts),
        len(listed) - len(absent),
        absent,
        commit,
        changed_files(repository.path, sorted({file for task in listed for file in task.files})),
    )


def _told(
    task: Listed, files: Mapping[str, str], found: Facts | LeftOut
) -> tuple[str, LeftOut | None]:
    """What the lock says of a task, and why it was left out if it was."""
    try:
        return task_text(task, files, found), found if isinstance(found, LeftOut) else None
    except ValueError as error:
        absent = left_out(FAILED, f"the output of its capture cannot be kept: {error}")
        return task_text(task, files, absent), absent


def _run(loader: Loader, targets: list[Target], request: Request, builds: Builder) -> Summary:
    for target in targets:
        root, file = f"@{repository_of(target.label.package)}", target.position.file
        loader.add(Package(target.label.package, root, {target.label.name: target}, file))
    labels = tuple(target.label for target in targets)
    summary = builds.execute(request, plan(request, settle(request, loader, labels), builds.store))
    if summary.interrupted:
        what = "the import was interrupted; nothing was written, finished captures are kept"
        raise Interrupted(Reason.INTERRUPTED, what)
    for label, item in summary.settled.items():
        if item.outcome in {Outcome.INFRA, Outcome.CANCELLED}:
            raise InfraError(Reason.ACTION_CRASHED, f"{label}: {item.message or 'cancelled'}")
    return summary


def _label(repository: Repository, task: Listed) -> Label:
    return Label(f"{repository.root}/{task.name}", task.name.rpartition("/")[2])


def _target(repository: Repository, adapter: Adapter, task: Listed) -> Target:
    attrs = {
        "task": task.name,
        "adapter": adapter.source,
        "originals": tuple(Source(path, repository.root) for path in task.files),
        "paths": task.files,
    }
    return Target(_label(repository, task), CAPTURE, attrs, Position(repository.lock))


def _digests(
    repository: Repository, listed: Sequence[Listed]
) -> dict[str, Mapping[str, str] | LeftOut]:
    """By task, the SHA-256 of its files, or why they cannot be read."""
    checkout = Checkout(repository.path)
    found: dict[str, Mapping[str, str] | LeftOut] = {}
    for task in listed:
        try:
            digests = {p: hashlib.sha256(checkout.read(p)).hexdigest() for p in task.files}
        except OSError as error:
            found[task.name] = left_out(UNREADABLE, unreadable(error))
        else:
            found[task.name] = task.absent or digests
    return found


def _facts(item: Settled, builds: Builder, known: Collection[str]) -> Facts | LeftOut:
    """What a capture wrote, or a class of failure if it wrote nothing readable."""
    if item.lacking:
        return left_out(FAILED, "its code ended the process, as sys.exit() does")
    file = item.result.file(FACTS) if item.result and item.outcome is Outcome.DONE else None
    if file is None:
        why = item.message.strip().partition("\n")[0] or "its capture ended without a result"
        return left_out(FAILED, why)
    try:
        if file.digest.size > _MOST_FACTS:
            raise ValueError("it is too large")
        return read_facts(builds.store.cas.get(file.digest), known)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        said = f"it has no {error}" if isinstance(error, KeyError) else error
        return left_out(FAILED, f"the output of its capture cannot be read: {said}")
