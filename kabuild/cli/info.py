"""``kabuild info``: where things are."""

from __future__ import annotations

from pathlib import Path

import click

from kabuild.base.errors import Reason, UsageError
from kabuild.base.suggest import suggest
from kabuild.base.version import __version__
from kabuild.execution.host import cpus
from kabuild.loading import builtin_root, find_workspace, load_workspace
from kabuild.loading.platform_index import PlatformIndex
from kabuild.model.platform import CPU
from kabuild.store import default_path
from kabuild.survey import probe


@click.command("info")
@click.argument("key", required=False)
def command(*, key: str | None) -> None:
    """Print the paths that kabuild uses; with KEY, print that value alone.

    \b
    kabuild info
    cd "$(kabuild info workspace)"
    """
    if key == "devices":
        click.echo(_devices())
        return
    workspace = load_workspace(find_workspace(Path.cwd()))
    values = {
        "workspace": str(workspace.root),
        "name": workspace.name,
        "out": str(workspace.root / "out"),
        "store": str(default_path()),
        "builtin": str(builtin_root()),
        "release": f"kabuild {__version__}",
        "platform": workspace.platform or "cpu",
        "agent": workspace.agent or "expert",
        "jobs": str(cpus()),
        "devices": "",
    }
    if key is None:
        values["devices"] = _devices()
        for name, value in values.items():
            click.echo(f"{name}: {value}")
    elif key in values:
        click.echo(values[key])
    else:
        hint = suggest(key, values) or f"keys: {', '.join(values)}"
        raise UsageError(Reason.UNKNOWN_KEY, f"no info key '{key}'", hint=hint)


def _devices() -> str:
    """The devices of all platforms in one line."""
    platforms = PlatformIndex.around(Path.cwd())
    names = (name for name in platforms.names() if name != CPU)
    there = [device for name in names for device in probe(platforms, name).found]
    return ", ".join(f"{item.name} ({item.model or item.arch})" for item in there) or "none"
