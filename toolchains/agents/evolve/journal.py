"""The journal: questions and answers, one JSON object a line, only appended to.

A search is a function of its seed and the answers that it gets. To resume, it starts over with the
journal: it does not repeat questions that the model or the judge has answered, and soon reaches the
same point. A line that was cut off by a sudden end is ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def key_of(*parts: str) -> str:
    """The key of a question: a digest of all its parts."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


class Journal:
    """The journal in a file, which is created if missing.

    ``now`` gives the seconds since this run began; each line has them, plus those of earlier runs.
    Safe for many threads.
    """

    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self._path = path
        self._now = now
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], Json] = {}
        self._before = 0.0
        data = path.read_bytes() if path.exists() else b""
        for line in data.splitlines():
            self._learn(line)
        if data and not data.endswith(b"\n"):
            self._append(b"\n")

    @property
    def seconds(self) -> float:
        """The seconds of this run and of earlier ones, up to their last lines."""
        return self._before + self._now()

    @property
    def seconds_before(self) -> float:
        """The seconds of earlier runs."""
        return self._before

    def find(self, kind: str, key: str) -> Any:
        """The entry of that key; None if there is none."""
        with self._lock:
            entry = self._known.get((kind, key))
        return None if entry is None else entry["value"]

    def write(self, kind: str, key: str, value: Any) -> None:
        """Add a line, unless there is one for this key. Raises OSError."""
        with self._lock:
            if (kind, key) in self._known:
                return
            entry = {"kind": kind, "key": key, "at": round(self.seconds, 3), "value": value}
            self._append(json.dumps(entry).encode() + b"\n")
            self._known[kind, key] = entry

    def _append(self, data: bytes) -> None:
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(data)

    def _learn(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
            kind, key = entry["kind"], entry["key"]
            at = float(entry["at"])
            known = entry["value"] is not None
        except (ValueError, KeyError, TypeError, RecursionError):
            return
        if known and isinstance(kind, str) and isinstance(key, str):
            self._known[kind, key] = entry
            self._before = max(self._before, at)
