"""``kabuild worker config``: the files that start a fleet."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kabuild.base.errors import Reason, UsageError
from kabuild.base.fs import atomic_write
from kabuild.base.reading import read_bounded
from kabuild.cli.new import say_written
from kabuild.cli.options import Options, argument, flag, takes
from kabuild.cli.types import JOBS, InputPath, WholeNumber, unwritable
from kabuild.loading.platform_index import PlatformIndex

_MOST_BYTES = 1 << 20
KINDS = ("systemd", "compose", "kubernetes", "buildgrid", "buildbox")


class Plain(click.ParamType):  # type: ignore[type-arg]
    """A text that needs no quotes in any of the files."""

    name = "text"

    def __init__(self, pattern: str, wanted: str) -> None:
        self._pattern = re.compile(pattern)
        self._wanted = wanted

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text. Fails if it is not as wanted."""
        if not self._pattern.fullmatch(str(value)):
            self.fail(f"must be {self._wanted}, got '{value}'", param, ctx)
        return str(value)


HOST = Plain(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,252}[A-Za-z0-9])?|\[[0-9a-fA-F:]{2,45}\]", "a host")
DATABASE = Plain(
    r"postgresql\+psycopg2://[A-Za-z0-9@:/?=&._%~-]{1,400}",
    "a URL like postgresql+psycopg2://USER@HOST/NAME",
)
POOL = Plain(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?", "a name of a-z, 0-9 and '-'")
PLATFORM = Plain(r"[a-z][a-z0-9_]{0,40}(:[a-z0-9_]{1,40})?", "NAME[:ARCH]")
ABSOLUTE = Plain(r"(/[A-Za-z0-9._+-]+)+", "an absolute path without spaces")
REGISTRY = Plain(r"[a-z0-9]([a-z0-9.:/_-]{0,200}[a-z0-9])?", "a registry like registry.example")


@dataclass(frozen=True, kw_only=True)
class ConfigFlags(Options):
    """The options of ``kabuild worker config``; see ``kabuild.worker.setup.Site``."""

    kind: str = argument(metavar=f"[{'|'.join(KINDS)}]", type=click.Choice(KINDS))
    host: str = flag(
        "--host", type=HOST, default="fleet.example", show_default=True, help="The server's host."
    )
    port: int = flag(
        "--port",
        type=WholeNumber(min=1, max=65535),
        default=50051,
        show_default=True,
        help="The server's port.",
    )
    tls: bool = flag("--tls", is_flag=True, help="Use certificates, which are in /etc/kabuild/tls.")
    database: str = flag(
        "--database",
        type=DATABASE,
        default="postgresql+psycopg2:///kabuild?host=/run/postgresql",
        metavar="URL",
        help="The server's database.  [default: kabuild on its machine]",
    )
    pool: str = flag(
        "--pool", type=POOL, default="cpu", show_default=True, help="The nodes' property 'pool'."
    )
    platform: str = flag(
        "--platform",
        type=PLATFORM,
        default="cpu",
        show_default=True,
        metavar="NAME[:ARCH]",
        help="What nodes offer besides cpu.",
    )
    gpus: int = flag(
        "--gpus",
        type=WholeNumber(min=0, max=64),
        default=0,
        show_default=True,
        help="GPUs of a node.",
    )
    jobs: int = flag(
        "--jobs", "-j", type=JOBS, default=8, show_default=True, help="Cores of a node."
    )
    workspace: str = flag(
        "--workspace",
        type=ABSOLUTE,
        default="/srv/kabuild",
        show_default=True,
        metavar="PATH",
        help="Where nodes have the workspace (systemd).",
    )
    kabuild: str = flag(
        "--program",
        type=ABSOLUTE,
        default="/opt/kabuild/bin/kabuild",
        show_default=True,
        metavar="PATH",
        help="Where nodes have kabuild (systemd).",
    )
    buildbox: str = flag(
        "--buildbox",
        type=ABSOLUTE,
        default="/usr/bin",
        show_default=True,
        metavar="DIR",
        help="Where nodes have buildbox-worker (systemd).",
    )
    registry: str = flag(
        "--registry",
        type=REGISTRY,
        default="registry.example",
        show_default=True,
        help="Where the images are (kubernetes).",
    )
    output: Path | None = flag(
        "--output",
        "-o",
        type=InputPath(file_okay=False),
        metavar="DIR",
        help="Write the files there instead of printing them.",
    )


@click.command("config")
@takes(ConfigFlags)
def config(options: ConfigFlags) -> None:
    """Print the files that start a server and nodes.

    \b
    kabuild worker config systemd --host=fleet.example --pool=cpu -o units
    kabuild worker config kubernetes --pool=h200 --platform=cuda --gpus=8 -o k8s
    kabuild worker config buildgrid > buildgrid.yaml
    kabuild worker config buildbox > get-buildbox

    Several files are printed one after another, each below a line with its name. Files that exist
    with other content are never replaced.
    """
    from kabuild.worker.setup import Site, files_of

    spec = PlatformIndex.around(Path.cwd()).spec(options.platform.partition(":")[0])
    if options.gpus and not spec.resource:
        raise UsageError(
            Reason.BAD_FLAG,
            f"--gpus={options.gpus}: nodes of platform '{spec.name}' have no GPUs",
            hint="say which platform they offer: --platform=NAME; its platform.toml has 'resource'",
        )
    site = Site(
        host=options.host,
        port=options.port,
        tls=options.tls,
        database=options.database,
        pool=options.pool,
        platform=options.platform,
        gpus=options.gpus,
        groups=" ".join(spec.groups),
        resource=spec.resource,
        jobs=options.jobs,
        workspace=options.workspace,
        kabuild=options.kabuild,
        buildbox=options.buildbox,
        registry=options.registry,
    )
    files = files_of(options.kind, site)
    if options.output:
        say_written(_write(options.output, files))
    elif len(files) == 1:
        click.echo("".join(files.values()), nl=False)
    else:
        click.echo("\n".join(f"==> {name} <==\n{text}" for name, text in files.items()), nl=False)


def _write(directory: Path, files: dict[str, str]) -> list[Path]:
    """Write all ``files``, or none. Raises UsageError, and InfraError for a full disk."""
    paths = {directory / name: text for name, text in files.items()}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, text in paths.items():
            is_there = os.path.lexists(path)  # a link to nothing, too
            if is_there and read_bounded(path, _MOST_BYTES) != text.encode():
                raise UsageError(
                    Reason.BAD_FLAG,
                    f"{path} exists and has other content; nothing was written",
                    hint="remove it, or choose another directory",
                )
        for path, text in paths.items():
            atomic_write(path, text.encode(), mode=0o755 if text.startswith("#!") else 0o644)
    except OSError as error:
        raise unwritable("--output", directory, error) from None
    return [*paths]
