"""What a search prints: a JSON object a line, which the adapter ``evolve`` reads."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from typing import Any, TextIO


class Transcript:
    """Entries of the transcript, usage, and at last how it ended. May be used by many threads."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._lock = threading.Lock()

    def say(self, role: str, text: str, **more: Any) -> None:
        """An entry: ``role`` is system or user (we ask), assistant, or tool (the gates say)."""
        self._print({"role": role, "text": text, **more})

    def usage(self, usage: Mapping[str, Any]) -> None:
        """What has been used so far."""
        self._print({"usage": dict(usage)})

    def end(self, state: str, message: str, figures: Mapping[str, Any]) -> None:
        """The last line."""
        self._print({"end": {"state": state, "message": message, "figures": dict(figures)}})

    def _print(self, entry: Mapping[str, Any]) -> None:
        line = json.dumps(entry, ensure_ascii=True)
        with self._lock:
            self._stream.write(line + "\n")
            self._stream.flush()
