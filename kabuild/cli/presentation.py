"""How the result of a build is shown, and the flags for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kabuild.cli.options import Options, flag
from kabuild.cli.types import OutputFile


@dataclass(frozen=True, kw_only=True)
class JsonFlags(Options):
    """For people or for programs."""

    as_json: bool = flag("--json", is_flag=True, help="Print the result as JSON on stdout.")


@dataclass(frozen=True, kw_only=True)
class PresentationFlags(JsonFlags):
    """Output for programs: on stdout, and in named files."""

    explain: Path | None = flag(
        "--explain",
        type=OutputFile(),
        metavar="FILE",
        help="Write to this file why each action ran or was cached.",
    )
    events: Path | None = flag(
        "--events",
        type=OutputFile(),
        metavar="FILE",
        help="Write events to this file, as JSON lines.",
    )
    summary: Path | None = flag(
        "--summary",
        type=OutputFile(),
        metavar="FILE",
        help="Append the scoreboard as Markdown, such as to $GITHUB_STEP_SUMMARY.",
    )
    test_output: str = "errors"

    @property
    def in_full(self) -> bool:
        """Whether remembered verdicts are not enough."""
        return self.as_json or self.test_output == "all" or any(self.outputs.values())

    @property
    def outputs(self) -> Mapping[str, Path | None]:
        """The files to write, by flag."""
        return {"--explain": self.explain, "--events": self.events, "--summary": self.summary}
