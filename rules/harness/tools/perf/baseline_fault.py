"""The error for a task whose own baseline fails when timed."""

from __future__ import annotations

import re
from pathlib import Path

from base.program import CandidateFault, Program
from truth.oracle import TaskFault


def baseline_fault(program: Program, fault: CandidateFault) -> TaskFault:
    """The task's fault, with the location of the entry if it is in Python."""
    said = str(fault).replace("the candidate", "it")
    return TaskFault(f"{_place(program)}the baseline fails when timed: {said}")


def _place(program: Program) -> str:
    path = Path(program.path)
    if path.suffix != ".py":
        return ""
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    for name in (program.entry, "reference"):  # "reference" stands in for a missing baseline
        begins = re.compile(rf"\s*(async\s+)?(def|class)\s+{re.escape(name)}\b")
        for number, text in enumerate(lines, 1):
            if begins.match(text):
                return f"{program.path}:{number}: "
    return f"{program.path}:1: "
