"""How prepared actions are run: here, elsewhere, or in a test by a script."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from typing import Protocol

from kabuild.execution.prepared import Prepared
from kabuild.model.result import ActionResult


@dataclass(frozen=True)
class Execution:
    """What one run of a command came to. A failing command is data.

    ``fault`` says why the command was stopped from outside (time, memory, ...); else empty.
    """

    result: ActionResult
    fault: str = ""


class Strategy(Protocol):
    """Runs commands. Called from many threads at once."""

    def hermetic(self) -> bool:
        """Whether runs see nothing but their inputs. May take milliseconds the first time."""
        ...

    def run(self, prepared: Prepared, cancel: Event) -> Execution:
        """Run the command whose inputs are in the store; its outputs are when this returns.

        Raises InfraError when it cannot be run, BlobMissingError when an input is gone from
        the store, and Interrupted when ``cancel`` was set before it ended.
        """
        ...
