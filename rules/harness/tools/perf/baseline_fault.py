"""The words for a task whose own baseline cannot be timed."""

from __future__ import annotations

import re
from pathlib import Path

from base.program import CandidateFault, Program
from truth.oracle import TaskFault


def baseline_fault(program: Program, fault: CandidateFault) -> TaskFault:
    """The task's mistake, with the place of the entry if that is Python."""
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
    for name in (program.entry, "reference"):  # which stands for a baseline that is missing
        begins = re.compile(rf"\s*(async\s+)?(def|class)\s+{re.escape(name)}\b")
        for number, text in enumerate(lines, 1):
            if begins.match(text):
                return f"{program.path}:{number}: "
    return f"{program.path}:1: "
