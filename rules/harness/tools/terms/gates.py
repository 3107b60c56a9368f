"""The gates, in the order of judging.

A gate is its package in ``tools/``, whose ``gate.py`` judges; its name here; and in
``rules/harness`` its files (``judge_files.py``), its action and its declaration for kabuild, which
knows no gates itself (``gates.py``).
"""

from __future__ import annotations

COMPILE, CORRECTNESS, PERF, UNSEEN, SCORE = "compile", "correctness", "perf", "unseen", "score"
RETENTION, SANITIZE, ADMISSION = "retention", "sanitize", "admission"

SCORED = (COMPILE, CORRECTNESS, PERF, UNSEEN)
"""Those that a score counts."""

WITH_POLICY = (CORRECTNESS, PERF, UNSEEN)
"""Those that a task may change something about."""
