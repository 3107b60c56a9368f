"""A digest of what a task asks of a kernel, by a bundle alone: only times of one digest compete."""

from __future__ import annotations

import json
from collections.abc import Iterable

from kabuild.bundle.claims import Get, object_of
from kabuild.bundle.manifest import Record
from kabuild.model.digest import Digest
from kabuild.store.trees import read_directory

_SPEC, _ORACLE = "spec.json", "task/"
_ASKED = ("family", "signature", "space", "compare", "reference")
"""What a specification says of a right result. Its configs say what is timed."""


def task_digest(gates: Iterable[Record], get: Get) -> str:
    """SHA-256 over oracle, signature, shape space and tolerances; empty if no gate says them.

    ``gates`` are the usual ones of one task; a bundle may hold others, too. Two tasks with one
    label and one digest ask the same: whoever eases what is right, in any gate, has another task.
    """
    said: dict[str, object] = {}
    for gate in gates:
        files = {path: node.digest for path, node in read_directory(gate.root, get).walk()}
        oracle = {path: str(digest) for path, digest in files.items() if path.startswith(_ORACLE)}
        if not oracle or _SPEC not in files:
            continue
        spec = object_of(get(files[_SPEC]))
        said |= {**oracle, **{name: spec[name] for name in _ASKED if name in spec}}
        if not gate.timed:  # how long a judge measures is no part of the task
            said[f"policy of {gate.gate}"] = spec.get("policy")
    return Digest.of(json.dumps(said, sort_keys=True).encode()).hash if said else ""
