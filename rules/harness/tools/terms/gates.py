"""The gates, in the order of judging.

A gate consists of its package in ``tools/``, whose ``gate.py`` judges; its name here; and, in
``rules/harness``, its files (``judge_files.py``), its action and its declaration for kabuild, which
itself knows no gates (``gates.py``).
"""

from __future__ import annotations

COMPILE, CORRECTNESS, PERF, UNSEEN, SCORE = "compile", "correctness", "perf", "unseen", "score"
RETENTION, SANITIZE, ADMISSION = "retention", "sanitize", "admission"

SCORED = (COMPILE, CORRECTNESS, PERF, UNSEEN)
"""The gates that count for a score."""

WITH_POLICY = (CORRECTNESS, PERF, UNSEEN)
"""The gates whose policy a task may change."""
