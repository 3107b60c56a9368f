"""The verdicts in a bundle, and those that are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from kabuild.base.bounded_json import bounded_json
from kabuild.base.errors import UsageError
from kabuild.bundle.manifest import Manifest, Record, damaged
from kabuild.model.action import VERDICT_FILE
from kabuild.model.digest import Digest
from kabuild.model.gate import Gates
from kabuild.model.label import Label
from kabuild.model.verdict import GateVerdict
from kabuild.store.merkle import Directory

Get = Callable[[Digest], bytes]

VERDICTS = "verdicts/"
"""Where a gate finds the verdicts of earlier ones, as ``verdicts/perf.json``."""


def verdicts(records: Sequence[Record], get: Get) -> Mapping[str, Mapping[str, int]]:
    """How many gates ended with each verdict, by gate, in the order of the records.

    Raises BundleError if it is not a verdict.
    """
    counts: dict[str, Counter[str]] = {}
    for record in records:
        if verdict := _verdict(record, get):
            counts.setdefault(record.gate, Counter())[verdict] += 1
    return counts


def left_out(manifest: Manifest, get: Get, known: Gates) -> Mapping[str, tuple[str, ...]]:
    """The tasks, trial by trial, without a verdict of a usual gate that nothing stopped, by gate.

    ``known`` says which gates are usual, also for a kind of task that only the publisher names.
    Gates that the publisher named without a record are among them; whatever a gate that did not
    pass stopped is not. Raises BundleError if it is not a verdict.
    """
    said: dict[str, list[tuple[str, str]]] = {task: [] for task in _named(manifest)}
    for record in manifest.records:
        if verdict := _verdict(record, get):
            said.setdefault(task_of(record).short, []).append((record.gate, verdict))
    going = {task: dict(told) for task, told in said.items() if all(v == "PASS" for _, v in told)}
    lacking: dict[str, list[str]] = {gate.name: [] for gate in known.all}
    for name, passed in going.items():
        for gate in known.of(kind_of(manifest, Label.parse(name))):
            if gate.usual and gate.name not in passed:
                lacking[gate.name].append(name)
    return {gate: tuple(tasks) for gate, tasks in lacking.items() if tasks}


def kind_of(manifest: Manifest, task: Label) -> str:
    """The kind of a task, as its publisher says; empty if that is not known."""
    kinds = manifest.request.get("kinds")
    found = kinds.get(task.in_trial(1).short) if isinstance(kinds, Mapping) else None
    return found if isinstance(found, str) else ""


def asked_for(manifest: Manifest) -> tuple[str, ...]:
    """The gates that its publisher says were asked for; empty if that is not known."""
    gates = manifest.request.get("gates")
    return tuple(map(str, gates)) if isinstance(gates, list) else ()


def check_handed_on(manifest: Manifest, roots: Mapping[Digest, Directory]) -> None:
    """Raise BundleError if a gate of a task judged by another verdict than the task's own gate's.

    A score of forged times would be reproduced to the byte. ``roots`` are the inputs of records.
    """
    said: dict[tuple[Label, str], Digest] = {}
    for record in manifest.records:
        file = record.file(VERDICT_FILE)
        if record.gate and record.task and file:
            of = task_of(record), record.gate
            if of in said:
                raise damaged(f"{of[0].short} has two verdicts of gate {record.gate}")
            said[of] = file.digest
    for record in manifest.records:
        inside = roots[record.root].directories.get(VERDICTS.rstrip("/"))
        for name, node in inside.files.items() if inside and record.task else ():
            own = said.get((task_of(record), name.removesuffix(".json")))
            if own is not None and own != node.digest:
                what = f"its input {VERDICTS}{name} is not the verdict of that gate"
                raise damaged(f"{record.label}: {what}")


def is_skipped(gate: str, data: bytes) -> bool:
    """Whether ``data`` is what gates find in place of a verdict that was skipped; it has no record.

    Every byte counts: it holds no figures.
    """
    try:
        verdict = GateVerdict.from_json(data)
    except ValueError:
        return False
    return data == GateVerdict.skipped(gate, verdict.summary).to_json()


def task_of(record: Record) -> Label:
    """The task of a record, with the number of the trial."""
    return Label.parse(record.task).in_trial(Label.parse(record.label).trial)


def _verdict(record: Record, get: Get) -> str:
    """What a gate said; empty if it is not a gate. Raises BundleError."""
    file = record.file(VERDICT_FILE)
    if not record.gate or file is None:
        return ""
    try:
        return str(bounded_json(get(file.digest))["verdict"])
    except (ValueError, KeyError, TypeError):
        raise damaged(f"the verdict of {record.label} is malformed") from None


def _named(manifest: Manifest) -> list[str]:
    """The tasks that its publisher says were asked for. Raises BundleError."""
    tasks = manifest.request.get("tasks", [])
    try:
        return [Label.parse(task).short for task in tasks]
    except (UsageError, TypeError, AttributeError):
        raise damaged(f"the requested tasks are not a list: {tasks!r}") from None
