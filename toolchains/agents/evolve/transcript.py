"""The output of a search: one JSON object a line, for the adapter ``evolve``."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from typing import Any, TextIO


class Transcript:
    """Writes entries of the transcript, usage, and finally the run's end. Safe for many threads."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._lock = threading.Lock()

    def say(self, role: str, text: str, **more: Any) -> None:
        """An entry: ``role`` is system or user (questions), assistant, or tool (from the gates)."""
        self._print({"role": role, "text": text, **more})

    def usage(self, usage: Mapping[str, Any]) -> None:
        """The usage so far."""
        self._print({"usage": dict(usage)})

    def end(self, state: str, message: str, figures: Mapping[str, Any]) -> None:
        """The last line."""
        self._print({"end": {"state": state, "message": message, "figures": dict(figures)}})

    def _print(self, entry: Mapping[str, Any]) -> None:
        line = json.dumps(entry, ensure_ascii=True)
        with self._lock:
            self._stream.write(line + "\n")
            self._stream.flush()
