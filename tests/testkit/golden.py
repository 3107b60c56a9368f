"""Golden files: what changed by accident is a failure, by decision an accepted file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1] / "golden"


def check(name: str, value: Any) -> None:
    """Compare ``value`` with ``tests/golden/NAME.json``; KABUILD_TEST_ACCEPT=1 writes it."""
    path = ROOT / f"{name}.json"
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    if os.environ.get("KABUILD_TEST_ACCEPT") == "1":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.is_file(), f"no {path}: run the test with KABUILD_TEST_ACCEPT=1"
    assert text == path.read_text(), f"differs from {path}: if meant, set KABUILD_TEST_ACCEPT=1"
