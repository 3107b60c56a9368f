"""How prepared actions are run: on this machine, or in a test by a script."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event
from typing import Protocol

from kabuild.execution.prepared import Prepared
from kabuild.model.result import ActionResult


@dataclass(frozen=True)
class Execution:
    """The result of one run of a command. A failing command is data.

    ``fault`` says why the command was stopped from outside (time, memory, ...); else empty.
    """

    result: ActionResult
    fault: str = ""


class Strategy(Protocol):
    """Runs commands. Called from many threads at once."""

    def hermetic(self) -> bool:
        """Whether runs see only their inputs. May take milliseconds the first time."""
        ...

    def run(self, prepared: Prepared, cancel: Event) -> Execution:
        """Run a command whose inputs are in the store, and store its outputs.

        Raises InfraError when it cannot be run, BlobMissingError if an input is missing from the
        store, and Interrupted if ``cancel`` was set before it ended.
        """
        ...
