"""``kabuild version``."""

from __future__ import annotations

import click

from kabuild.base.version import __version__


@click.command("version")
def command() -> None:
    """Print the version.

    \b
    kabuild version
    """
    click.echo(f"kabuild {__version__}")
