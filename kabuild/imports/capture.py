"""Capturing: every task of a checkout runs once in a sandbox, and its facts become a lock."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kabuild.base.bounded_json import read_json
from kabuild.base.errors import InfraError, LoadError, Position, Reason
from kabuild.base.reading import read_plain
from kabuild.builder import Builder
from kabuild.imports.adapter import Adapter, Listed
from kabuild.imports.checkout import check_commit
from kabuild.imports.lock_text import Facts, lock_text, toml
from kabuild.loading import Loader, Package, load_workspace
from kabuild.loading.checkout import MOST_BYTES
from kabuild.loading.repository import Repository
from kabuild.loading.request import Request
from kabuild.model.action import Source
from kabuild.model.label import Label, repository_of
from kabuild.model.result import Outcome, Settled
from kabuild.model.target import Target
from kabuild.pipeline import Summary, plan, settle

KIND = "capture"
FACTS = "facts.json"
_MOST_FACTS = 4 << 20


@dataclass(frozen=True)
class Captured:
    """The result of an import.

    Attributes:
        text: the lock.
        imported: how many tasks have a target.
        left_out: by task, the class of the failure and a sentence.
    """

    text: str
    imported: int
    left_out: Mapping[str, tuple[str, str]] = field(hash=False)

    @property
    def classes(self) -> Mapping[str, int]:
        """How many tasks were left out, by class."""
        return Counter(reason for reason, _ in self.left_out.values())


def capture(
    workspace: Path, repository: Repository, adapter: Adapter, request: Request, builds: Builder
) -> Captured:
    """Run all captures that are not cached; returns the results.

    Raises LoadError for a checkout of another commit, InfraError if the machine failed.
    """
    commit = check_commit(repository)
    listed = adapter.tasks(repository.path)
    targets = [_target(repository, adapter, task) for task in listed]
    summary = _run(Loader(load_workspace(workspace)), targets, request, builds)
    found: list[tuple[Listed, Mapping[str, str], Facts]] = []
    for task in listed:
        facts = _facts(summary.settled[_label(repository, task)], builds)
        found.append((task, _digests(repository, task), facts))
    absent = {
        task.name: (facts["left_out"]["reason"], facts["left_out"]["why"])
        for task, _, facts in found
        if "left_out" in facts
    }
    return Captured(lock_text(adapter, commit, found), len(listed) - len(absent), absent)


def _run(loader: Loader, targets: list[Target], request: Request, builds: Builder) -> Summary:
    for target in targets:
        root, file = f"@{repository_of(target.label.package)}", target.position.file
        loader.add(Package(target.label.package, root, {target.label.name: target}, file))
    labels = tuple(target.label for target in targets)
    summary = builds.execute(request, plan(request, settle(request, loader, labels), builds.store))
    for label, item in summary.settled.items():
        if item.outcome in {Outcome.INFRA, Outcome.CANCELLED}:
            raise InfraError(Reason.ACTION_CRASHED, f"{label}: {item.message or 'interrupted'}")
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
    return Target(_label(repository, task), KIND, attrs, Position(repository.lock))


def _digests(repository: Repository, task: Listed) -> dict[str, str]:
    found = {}
    for path in task.files:
        try:
            data = read_plain(repository.path / path, MOST_BYTES)
        except OSError as error:
            what = f"{repository.shown}/{path} cannot be read: {error.strerror}"
            raise LoadError(Reason.MISSING_FILE, what, position=repository.position) from None
        found[path] = hashlib.sha256(data).hexdigest()
    return found


def _facts(item: Settled, builds: Builder) -> dict[str, Any]:
    """What a capture wrote, or a class of failure if it wrote nothing readable."""
    file = item.result.file(FACTS) if item.result and item.outcome is Outcome.DONE else None
    if file is None:
        why = item.message.strip().partition("\n")[0] or "its capture ended without a result"
        return {"left_out": {"reason": "CAPTURE_FAILED", "why": why}}
    try:
        if file.digest.size > _MOST_FACTS:
            raise ValueError("it is too large")
        facts: dict[str, Any] = read_json(builds.store.cas.get(file.digest))
        absent = facts.get("left_out")
        if absent:
            return {"left_out": {"reason": str(absent["reason"]), "why": str(absent["why"])}}
        attrs = dict(facts["attrs"])
        toml(attrs)  # raises for values that a lock cannot express
        return {"origin": str(facts["origin"]), "attrs": attrs}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"the output of its capture cannot be read: {error}"
        return {"left_out": {"reason": "CAPTURE_FAILED", "why": why}}
