"""What a bundle's records claim, checked against their actions and against its blobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
        raise false_claim(record, f"it is marked as {said}replayable, but uses {uses}")
    judged = _judged(record, get)
    if not record.gate:
        if judged in {"", BASELINE} or not record.task:  # how a baseline is timed is no gate
            return
        if Label.parse(record.label) == task_of(record).sub(judged):
            raise false_claim(record, f"it is gate {judged!r:.60}, but marked as no gate")
        return
    if not record.task or Label.parse(record.label) != task_of(record).sub(record.gate):
        what = f"it is marked as gate {record.gate} of {record.task or 'no task'}"
        raise false_claim(record, what)
    if VERDICT_FILE not in action.outputs:
        what = f"it is marked as gate {record.gate}, but writes no {VERDICT_FILE}"
        raise false_claim(record, what)
    for source, gate in ((VERDICT_FILE, judged), (_SPEC, _specified(root, get))):
        if gate not in {"", record.gate}:
            what = f"it is marked as gate {record.gate}, but its {source} says {gate!r:.60}"
            raise false_claim(record, what)


def check_machine(record: Record, action: Action, machine: Mapping[str, str], get: Get) -> None:
    """Raise BundleError if a gate measured on another platform than the bundle says.

    Pages and records name the bundle's ``machine``.
    """
    file = record.file(VERDICT_FILE)
    if not record.gate or file is None or not is_measured(object_of(get(file.digest))):
        return
    platform = {"name": action.platform.name, **dict(action.platform.properties)}
    for name in sorted(platform.keys() | machine.keys()):
        then, here = platform.get(name, "unknown"), machine.get(name, "unknown")
        if then != here:
            what = f"its machine has {name} {here!r:.60}, but the key has {then!r:.60}"
            raise false_claim(record, what)


def check_outputs(manifest: Manifest) -> None:
    """Raise BundleError if a bundle leaves out a verdict, or an output that it says it has."""
    for record in manifest.records:
        for file in record.files:
            if file.path in record.withheld:
                if file.path == VERDICT_FILE:
                    raise false_claim(record, f"its {VERDICT_FILE} is left out")
            elif manifest.blobs.get(file.digest.hash) != file.digest.size:
                raise false_claim(record, f"its output {file.path[:80]!r} is not in the bundle")


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
    gate = object_of(data).get("gate")
    return gate if isinstance(gate, str) else ""


def object_of(data: bytes) -> Mapping[str, Any]:
    """A JSON object; empty for anything else."""
    try:
        value = bounded_json(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def false_claim(record: Record, why: str) -> BundleError:
    """That a record says what its action or the bundle's blobs contradict."""
    what = f"{record.label} is not what the bundle says: {why}"
    return BundleError(Reason.BUNDLE_DAMAGED, what, hint="do not trust this bundle")
