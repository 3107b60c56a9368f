"""The timeouts of one execution on a server."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Timeouts:
    """After how many seconds an execution is given up.

    Attributes:
        queued: in the queue: no worker takes it.
        running: on a worker.
        away: without any answer from the server.
    """

    queued: float
    running: float
    away: float
