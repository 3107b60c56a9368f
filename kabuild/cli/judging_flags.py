"""The flags of all commands that judge tasks."""

from __future__ import annotations

from dataclasses import dataclass

from kabuild.cli.flags import (
    KeyFlags,
    PolicyFlags,
    RunFlags,
    SaltFlags,
    TargetFlags,
    TrialFlags,
    WhereFlags,
)
from kabuild.cli.remote_flags import RemoteFlags


@dataclass(frozen=True, kw_only=True)
class JudgingFlags(
    TargetFlags, WhereFlags, TrialFlags, PolicyFlags, SaltFlags, KeyFlags, RunFlags, RemoteFlags
):
    """What commands share that judge tasks, but for whose kernels are judged."""
