"""Priorities: the longest remaining path goes first, by the times of earlier runs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path

from kabuild.base.bounded_json import bounded_json
from kabuild.base.own_files import write_own
from kabuild.base.reading import read_plain
from kabuild.model.action import Action
from kabuild.model.graph import ActionGraph

DEFAULT_SECONDS = 1.0
"""The estimate in seconds for an action without any history."""

_SCHEMA = 1
_LIMIT = 20_000


class History:
    """Seconds that actions took, by label, kept in one small file.

    Only a hint: losing it changes no result. The last of two processes that save wins for
    the labels that both ran.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._known: dict[str, tuple[float, str]] | None = None
        self._fresh: dict[str, tuple[float, str]] = {}

    def record(self, action: Action, seconds: float) -> None:
        """Record the time of a run."""
        self._fresh[str(action.label)] = (round(seconds, 3), action.mnemonic)

    def estimates(self, graph: ActionGraph) -> dict[str, float]:
        """The estimated seconds of each action: its last run, else the mean of its mnemonic."""
        known = {**self._load(), **self._fresh}
        alike: dict[str, list[float]] = {}
        for seconds, mnemonic in known.values():
            alike.setdefault(mnemonic, []).append(seconds)
        means = {mnemonic: sum(all_) / len(all_) for mnemonic, all_ in alike.items()}
        return {
            label: known[label][0]
            if label in known
            else means.get(action.mnemonic, DEFAULT_SECONDS)
            for label, action in graph.actions.items()
        }

    def save(self) -> None:
        """Write the recorded times. If the store cannot be written, only this hint is lost."""
        if not self._fresh or self._path is None:
            return
        self._known = None
        merged = {**self._load(), **self._fresh}
        kept = dict(list(merged.items())[-_LIMIT:])
        with contextlib.suppress(OSError):
            write_own(self._path, json.dumps({"schema": _SCHEMA, "labels": kept}).encode())
        self._fresh = {}

    def _load(self) -> dict[str, tuple[float, str]]:
        if self._known is None:
            self._known = _read(self._path) if self._path else {}
        return self._known


def priorities(graph: ActionGraph, estimates: Mapping[str, float]) -> dict[str, float]:
    """Seconds from the start of each action to the end of the longest chain behind it."""
    longest: dict[str, float] = {}
    behind = dict.fromkeys(graph.actions, 0.0)
    for label, action in reversed(list(graph.actions.items())):
        longest[label] = estimates[label] + behind[label]
        for dependency in action.dependencies():
            behind[dependency] = max(behind[dependency], longest[label])
    return longest


def _read(path: Path) -> dict[str, tuple[float, str]]:
    try:
        value = bounded_json(read_plain(path))
        if value["schema"] != _SCHEMA:
            return {}
        return {str(k): (float(v[0]), str(v[1])) for k, v in value["labels"].items()}
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return {}
