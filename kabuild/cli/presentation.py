"""How the result of a build is shown, and the flags that say so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click


@dataclass(frozen=True)
class Presentation:
    """How a result is shown.

    Attributes:
        output: how much to print of each task: ``errors``, ``all`` or ``summary``.
        as_json: print the whole result as JSON instead.
        explain, events, summary: files to write, each if given.
    """

    output: str = "errors"
    as_json: bool = False
    explain: Path | None = None
    events: Path | None = None
    summary: Path | None = None

    @property
    def in_full(self) -> bool:
        """Whether it takes more than verdicts that are remembered."""
        files = (self.explain, self.events, self.summary)
        return self.as_json or self.output == "all" or any(files)


def presentation_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the flags about files that it leaves for programs."""
    for flag in reversed(_FLAGS):
        command = flag(command)
    return command


_FILE = click.Path(path_type=Path, dir_okay=False)
_FLAGS = (
    click.option("--json", "as_json", is_flag=True, help="Print the result as JSON on stdout."),
    click.option(
        "--events", type=_FILE, metavar="FILE", help="Write what happens, as JSON lines, here."
    ),
    click.option(
        "--summary",
        type=_FILE,
        metavar="FILE",
        help="Append the scoreboard as Markdown, such as to $GITHUB_STEP_SUMMARY.",
    ),
)
