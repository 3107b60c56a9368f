"""Proofs that imported tasks mean what they meant: the gate of tasks whose own check is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kabuild.loading import Loader
from kabuild.model.label import Label, repository_of

PROOF = "proof"
_CHECK = "check"


@dataclass(frozen=True)
class Provable:
    """The tasks of patterns.

    Attributes:
        gates: the labels of the proofs.
        without: tasks whose original has no check that an adapter knows.
    """

    gates: tuple[Label, ...]
    without: tuple[Label, ...]


def provable(loader: Loader, tasks: Sequence[Label]) -> Provable:
    """What can be proved of ``tasks``, which are of external repositories."""
    known, without = [], []
    for label in tasks:
        repository, _, name = label.package.partition("/")
        task = loader.external.lock(repository_of(repository)).task(name)
        if task.attrs.get(_CHECK):
            known.append(label.sub(PROOF))
        else:
            without.append(label)
    return Provable(tuple(known), tuple(without))
