"""How long one waits for an execution."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """How long an execution may take, in seconds.

    Attributes:
        queued: in the queue: no worker takes it.
        running: on a worker.
        away: without any answer from the server.
    """

    queued: float
    running: float
    away: float
