"""What ``kabuild doctor`` finds, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique


@unique
class State(Enum):
    """How a finding bears on the main job: judging on this machine."""

    OK = "ok"
    OPTIONAL = "absent"
    WARNING = "warning"
    PROBLEM = "PROBLEM"


@dataclass(frozen=True)
class Finding:
    """One thing looked at: what was found, and what to do if it should be otherwise."""

    name: str
    state: State
    found: str
    advice: str = ""
