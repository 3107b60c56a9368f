"""What a bundle's records claim, checked against their actions and against its blobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kabuild.base.bounded_json import bounded_json
from kabuild.base.errors import BundleError, Reason
from kabuild.bundle.figures import is_measured
from kabuild.bundle.manifest import Manifest, Record
from kabuild.bundle.verdicts import task_of
from kabuild.model.action import VERDICT_FILE, Action
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.store.merkle import Directory

Get = Callable[[Digest], bytes]

CANDIDATE = "candidate"
"""The directory in which an action finds the kernel that it compiles, runs or reads."""

BASELINE = "baseline"
"""The directory of the kernel that it is compared with."""

_SPEC = "spec.json"
"""The input that tells a judge which gate it is."""


def check_claims(record: Record, action: Action, root: Directory, get: Get) -> None:
    """Raise BundleError if a record contradicts its action, whose inputs are ``root``.

    Else a gate could stand for another one, or be one that no replay runs.
    """
    rerun = not (action.network or action.secrets)
    if record.replayable != rerun:
        uses = "neither a network nor secrets" if rerun else "a network or secrets"
        said = "" if record.replayable else "not "
        raise _false(record, f"it is marked as {said}replayable, but uses {uses}")
    judged = _judged(record, get)
    if not record.gate:
        if judged and record.task and Label.parse(record.label) == task_of(record).sub(judged):
            raise _false(record, f"it is gate {judged!r:.60}, but marked as no gate")
        return
    if not record.task or Label.parse(record.label) != task_of(record).sub(record.gate):
        raise _false(record, f"it is marked as gate {record.gate} of {record.task or 'no task'}")
    if VERDICT_FILE not in action.outputs:
        raise _false(record, f"it is marked as gate {record.gate}, but writes no {VERDICT_FILE}")
    for source, gate in ((VERDICT_FILE, judged), (_SPEC, _specified(root, get))):
        if gate not in {"", record.gate}:
            what = f"it is marked as gate {record.gate}, but its {source} says {gate!r:.60}"
            raise _false(record, what)


def check_machine(record: Record, action: Action, machine: Mapping[str, str], get: Get) -> None:
    """Raise BundleError if a gate measured on another platform than the bundle says.

    Pages and records name the bundle's ``machine``.
    """
    file = record.file(VERDICT_FILE)
    if not record.gate or file is None or not is_measured(_object(get(file.digest))):
        return
    platform = {"name": action.platform.name, **dict(action.platform.properties)}
    for name in sorted(platform.keys() | machine.keys()):
        then, here = platform.get(name, "unknown"), machine.get(name, "unknown")
        if then != here:
            what = f"its machine has {name} {here!r:.60}, but the key has {then!r:.60}"
            raise _false(record, what)


def check_outputs(manifest: Manifest) -> None:
    """Raise BundleError if a bundle leaves out a verdict, or an output that it says it has."""
    for record in manifest.records:
        for file in record.files:
            if file.path in record.withheld:
                if file.path == VERDICT_FILE:
                    raise _false(record, f"its {VERDICT_FILE} is left out")
            elif manifest.blobs.get(file.digest.hash) != file.digest.size:
                raise _false(record, f"its output {file.path[:80]!r} is not in the bundle")


def check_candidates(records: Sequence[Record], roots: Mapping[Digest, Directory]) -> None:
    """Raise BundleError if gates of one task judged different kernels.

    A page would show the source of one beside the times of the other. The kernel is what the task's
    first gate found in ``candidate/``, and whatever actions of the task made of that alone.
    """
    own: dict[Label, set[Digest]] = {}
    for record in records:
        given = _candidate(roots[record.root])
        if record.task and record.gate and given:
            own.setdefault(task_of(record), given)
    for record in records:  # each after those that made its inputs
        if not record.task or not (given := _candidate(roots[record.root])):
            continue
        known = own.get(task_of(record), given)
        if given <= known:
            if record.replayable and not record.timed:  # what a replay makes again
                known.update(file.digest for file in record.files)
        elif record.gate:
            first = next(iter(sorted(given - known, key=str)))
            raise _false(record, f"it judged another kernel than the task's first gate ({first})")


def _candidate(root: Directory) -> set[Digest]:
    inside = root.directories.get(CANDIDATE)
    return {node.digest for _, node in inside.walk()} if inside else set()


def _judged(record: Record, get: Get) -> str:
    """The gate whose verdict a record has; empty if it has none."""
    file = record.file(VERDICT_FILE)
    return gate_of(get(file.digest)) if file else ""


def _specified(root: Directory, get: Get) -> str:
    """The gate that a judge is told to be; empty if it is told nothing."""
    node = root.files.get(_SPEC)
    return gate_of(get(node.digest)) if node else ""


def gate_of(data: bytes) -> str:
    """The gate that a verdict or a specification names; empty if it names none."""
    gate = _object(data).get("gate")
    return gate if isinstance(gate, str) else ""


def _object(data: bytes) -> Mapping[str, Any]:
    """A JSON object; empty for anything else."""
    try:
        value = bounded_json(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _false(record: Record, why: str) -> BundleError:
    what = f"{record.label} is not what the bundle says: {why}"
    return BundleError(Reason.BUNDLE_DAMAGED, what, hint="do not trust this bundle")
