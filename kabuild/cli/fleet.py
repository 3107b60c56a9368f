"""``kabuild fleet``: what a fleet has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import click

from kabuild.base.errors import Reason, UsageError
from kabuild.cli.finding import tell_findings
from kabuild.cli.flags import TargetFlags
from kabuild.cli.options import takes
from kabuild.cli.presentation import JsonFlags
from kabuild.cli.remote_flags import ServerFlags


@click.group("fleet")
def command() -> None:
    """Check a fleet.

    \b
    kabuild fleet status --config=fleet
    """


@dataclass(frozen=True, kw_only=True)
class StatusFlags(ServerFlags, JsonFlags):
    """The options of ``kabuild fleet status``."""

    unbound: ClassVar = TargetFlags.unbound  # --config


@command.command("status", context_settings={"show_default": False})
@takes(StatusFlags)
def status(options: StatusFlags) -> None:
    """Show servers, workers, and toolchains that differ.

    \b
    kabuild fleet status --config=fleet
    kabuild fleet status --remote_executor=grpc://fleet.example:8980 --json

    Exits with 36 if something does not work.
    """
    remote = options.server()
    if remote is None:
        raise UsageError(
            Reason.BAD_FLAG,
            "no server is named",
            hint="--remote_executor=URL or --config=NAME names one",
        )
    from kabuild.cli.doctor_fleet import find_servers

    tell_findings([*find_servers(remote)], as_json=options.as_json)
