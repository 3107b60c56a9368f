"""The findings of ``kabuild doctor``, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique


@unique
class State(Enum):
    """What a finding means for judging on this machine."""

    OK = "ok"
    OPTIONAL = "absent"
    WARNING = "warning"
    PROBLEM = "PROBLEM"


@dataclass(frozen=True)
class Finding:
    """One check: what was found, and what to do about it."""

    name: str
    state: State
    found: str
    advice: str = ""
