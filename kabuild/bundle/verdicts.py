"""The verdicts that a bundle holds, and those that it does not."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from kabuild.base.errors import UsageError
from kabuild.bundle.manifest import Manifest, Record, damaged
from kabuild.model.action import VERDICT_FILE
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.options import GATES

Get = Callable[[Digest], bytes]


def verdicts(records: Sequence[Record], get: Get) -> Mapping[str, Mapping[str, int]]:
    """How many gates ended with each verdict, by gate, in the order of the records.

    Raises BundleError for what is no verdict.
    """
    counts: dict[str, Counter[str]] = {}
    for record in records:
        if verdict := _verdict(record, get):
            counts.setdefault(record.gate, Counter())[verdict] += 1
    return counts


def left_out(manifest: Manifest, get: Get) -> Mapping[str, tuple[str, ...]]:
    """The tasks, trial by trial, without a verdict of a usual gate that nothing stopped, by gate.

    What the publisher named and gave no record of is among them; whatever a gate that did not
    pass stopped is not. Raises BundleError for what is no verdict.
    """
    said: dict[str, list[tuple[str, str]]] = {task: [] for task in _named(manifest)}
    for record in manifest.records:
        if verdict := _verdict(record, get):
            task = Label.parse(record.task).in_trial(Label.parse(record.label).trial)
            said.setdefault(task.short, []).append((record.gate, verdict))
    going = {task: dict(told) for task, told in said.items() if all(v == "PASS" for _, v in told)}
    lacking = {gate: tuple(task for task in going if gate not in going[task]) for gate in GATES}
    return {gate: tasks for gate, tasks in lacking.items() if tasks}


def asked_for(manifest: Manifest) -> tuple[str, ...]:
    """The gates that its publisher says were asked for; empty where that is not known."""
    gates = manifest.request.get("gates")
    return tuple(map(str, gates)) if isinstance(gates, list) else ()


def _verdict(record: Record, get: Get) -> str:
    """What a gate said; empty for what is none. Raises BundleError."""
    file = record.file(VERDICT_FILE)
    if not record.gate or file is None:
        return ""
    try:
        return str(json.loads(get(file.digest))["verdict"])
    except (ValueError, KeyError, TypeError):
        raise damaged(f"the verdict of {record.label} is none") from None


def _named(manifest: Manifest) -> list[str]:
    """The tasks that its publisher says were asked for. Raises BundleError."""
    tasks = manifest.request.get("tasks", [])
    try:
        return [Label.parse(task).short for task in tasks]
    except (UsageError, TypeError, AttributeError):
        raise damaged(f"what was asked for is no list of tasks: {tasks!r}") from None
