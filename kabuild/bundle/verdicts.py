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

Get = Callable[[Digest], bytes]


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
    What the publisher named and gave no record of is among them; whatever a gate that did not
    pass stopped is not. Raises BundleError if it is not a verdict.
    """
    said: dict[str, list[tuple[str, str]]] = {task: [] for task in _named(manifest)}
    for record in manifest.records:
        if verdict := _verdict(record, get):
            task = Label.parse(record.task).in_trial(Label.parse(record.label).trial)
            said.setdefault(task.short, []).append((record.gate, verdict))
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


def _verdict(record: Record, get: Get) -> str:
    """What a gate said; empty for what is none. Raises BundleError."""
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
