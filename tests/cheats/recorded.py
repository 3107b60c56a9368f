"""Verdicts of candidates, by the keys that they follow from.

``verdicts.json`` has what came of each candidate, and under which key. A run judges those whose key
is another one, and some of the others, which the commit chooses; ``make test-all`` judges all.
``KABUILD_TEST_ACCEPT=1`` records what a run has judged.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from kabuild.analysis import analyze
from kabuild.loading import Loader, expand, load_workspace
from kabuild.model.action import Output
from kabuild.model.graph import ActionGraph
from kabuild.model.options import Options
from tests.tasks.chosen import every, first_in_turn, turn
from tests.testkit.kept import REPOSITORY, digest_of, imported_by
from tests.testkit.own_tasks import PLATFORMS, keys
from tests.testkit.toolchains import any_toolchain

Entry = Mapping[str, Any]
FILE = Path(__file__).with_name("verdicts.json")
RUN_BY = ("sandbox", *imported_by("execution/local.py", "execution/cached.py"))
"""Not the fleet's side of ``execution``: no candidate is judged by a fleet here."""

WHEELS = "toolchains/python/requirements.txt"
UNTIMED = frozenset({"compile", "correctness", "unseen"})
TIMED = UNTIMED | {"perf"}
SHARE = 6
"""One in so many is judged although nothing changed that its verdict follows from."""

FIELDS = ("verdict", "reason", "summary")


class Record:
    """What is known of the packages below ``root``, and which of them are judged in this run.

    They are judged by ``gates``, and by no other ones.
    """

    def __init__(
        self,
        root: Path,
        packages: Sequence[str],
        gates: Collection[str] = UNTIMED,
        file: Path = FILE,
    ) -> None:
        self._file = file
        self._keys = keys_of(root, packages, gates)
        self._known = _read(file)
        chosen = first_in_turn(packages, -(-len(packages) // SHARE), turn())
        self.due = [name for name in packages if every() or name in chosen or self._changed(name)]
        """Those that are judged."""

    def known(self) -> dict[str, dict[str, Entry]]:
        """By package and gate, what is recorded of those that are not judged."""
        return {
            name: {
                gate: {**dict(zip(FIELDS, said, strict=True)), "detail": "as recorded"}
                for gate, said in self._known[name]["gates"].items()
            }
            for name in self._keys
            if name not in self.due
        }

    def accept(self, found: Mapping[str, Mapping[str, Entry]]) -> None:
        """Record what was judged, where that is wanted. What is not in ``found`` stays unknown."""
        if os.environ.get("KABUILD_TEST_ACCEPT") != "1":
            return
        self._known = {
            name: said for name, said in _read(self._file).items() if name not in self.due
        }
        self._known |= {
            name: {
                "key": self._keys[name],
                "gates": {
                    gate: [entry[field] for field in FIELDS] for gate, entry in found[name].items()
                },
            }
            for name in self.due
            if name in found
        }
        self._file.write_text(json.dumps(self._known, indent=1, sort_keys=True) + "\n")

    def _changed(self, name: str) -> bool:
        return self._known.get(name, {}).get("key") != self._keys[name]


def keys_of(root: Path, packages: Sequence[str], gates: Collection[str]) -> dict[str, str]:
    """By package, a digest of all that its verdicts follow from.

    That is the keys of these gates and of what they build on, the wheels, and what runs and
    confines them.
    """
    if not packages:
        return {}
    loader = Loader(load_workspace(root))
    options = Options(PLATFORMS["cpu"], loader.workspace.agent_label("expert"))
    targets = expand(loader, [f"//{name}" for name in packages])
    parts = defaultdict[str, list[str]](list)
    analysis = analyze(loader, targets, options, resolve=any_toolchain)
    used = _used(analysis.graph, gates)
    found = keys(analysis, root, REPOSITORY)
    for label, key in sorted((label, key) for label, key in found.items() if label in used):
        package = label.partition(":")[0].removeprefix("//")
        parts[package if package in packages else ""].append(f"{label} {key}")
    shared = [digest_of(RUN_BY), (REPOSITORY / WHEELS).read_text(), *parts[""]]
    return {name: _digest([*shared, *parts[name]]) for name in packages}


def _used(graph: ActionGraph, gates: Collection[str]) -> set[str]:
    """The labels of ``gates``, and of all actions that these build on."""
    actions = {str(action.label): action for action in graph}
    todo = [label for label in actions if label.rpartition(":")[2].partition(".")[2] in gates]
    used: set[str] = set()
    while todo:
        if (label := todo.pop()) not in used:
            used.add(label)
            made = (item for _, item in actions[label].inputs)
            todo += [item.producer for item in made if isinstance(item, Output)]
    return used


def _digest(parts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _read(file: Path) -> dict[str, Any]:
    known: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return known
