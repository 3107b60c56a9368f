"""What the gates of one task were told: the same task, and each side by its own files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kabuild.bundle.candidates import CANDIDATE, leaves_inputs
from kabuild.bundle.claims import BASELINE, Get, false_claim, object_of
from kabuild.bundle.manifest import Record
from kabuild.bundle.verdicts import task_of
from kabuild.model.action import Action
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.store.merkle import Directory

_OURS = f"{CANDIDATE}/"
_OF_TASK = ("task/", f"{BASELINE}/")
"""Where gates find the oracle and the kernel to beat."""

_RUNNING = ("runner/", "runtime/")
"""Where a judge's own native code lies."""

_SHARED = ("family", "signature", "space", "configs", "compare", "flops", "salt", "reference")
"""What a specification says of the task, and not of the gate."""


def check_agreement(
    records: Sequence[Record],
    roots: Mapping[Digest, Directory],
    actions: Mapping[Digest, Action],
    get: Get,
) -> None:
    """Raise BundleError if gates of one task judged different things, or took one side for another.

    Every such gate can be rerun, and says what the bundle says: the judge does what a specification
    tells it. With the sides exchanged a slow kernel is fast; with another oracle a wrong one is
    right. ``roots`` are by their own digests, ``actions`` by keys.
    """
    told: dict[tuple[Label, str], object] = {}
    for record in records:
        if not record.gate or not record.task:
            continue
        files = {path: node.digest for path, node in roots[record.root].walk()}
        said: dict[str, object] = {p: d for p, d in files.items() if p.startswith(_OF_TASK)}
        for spec in _specifications(record, actions[record.key], files, get):
            _check_sides(record, spec, files)
            said |= {name: spec[name] for name in _SHARED if name in spec}
        for name, value in said.items():
            if told.setdefault((task_of(record), name), value) != value:
                raise false_claim(record, f"it was told another {name} than the task's other gates")


def _specifications(
    record: Record, action: Action, files: Mapping[str, Digest], get: Get
) -> Iterator[Mapping[str, Any]]:
    """The specifications that a command names: those of judges have a candidate."""
    for argument in action.argv[1:]:
        if leaves_inputs(argument):
            raise false_claim(record, f"its command names {argument[:60]!r}, which is not an input")
        path = "/".join(part for part in argument.split("/") if part not in {"", "."})
        if path in files:
            spec = object_of(get(files[path]))
            if CANDIDATE in spec:
                yield spec


def _check_sides(record: Record, spec: Mapping[str, Any], files: Mapping[str, Digest]) -> None:
    ours, theirs = _path(spec.get(CANDIDATE)), _path(spec.get(BASELINE))
    if not ours.startswith(_OURS) or ours not in files:
        raise false_claim(record, f"it judged {ours[:60]!r}, which is not in {_OURS}")
    if record.timed and theirs and (theirs not in files or theirs.startswith(_OURS)):
        raise false_claim(record, f"it timed {theirs[:60]!r} as the baseline")
    for path in _native(spec):
        if path not in files or not path.startswith(_RUNNING):
            raise false_claim(record, f"it ran the candidate with {path[:60]!r}")


def _native(spec: Mapping[str, Any]) -> Iterator[str]:
    """The paths of what runs in the candidate's process; a value of a wrong type is no path."""
    libraries = spec.get("libraries", [])
    listed = libraries if isinstance(libraries, list) else [[libraries]]
    named = [spec.get(name) for name in ("runner", "launch_filter")]
    yield from map(str, [*filter(None, named), *listed])


def _path(side: object) -> str:
    path = side.get("path") if isinstance(side, dict) else None
    return path if isinstance(path, str) else ""
