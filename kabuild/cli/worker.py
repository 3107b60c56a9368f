"""``kabuild worker``: a node of a fleet."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kabuild.base.errors import Reason, UsageError
from kabuild.cli.types import JOBS, InputPath
from kabuild.cli.worker_config import config

if TYPE_CHECKING:
    from kabuild.remote.signing import Signer

SOCKET = "/run/kabuild/worker.sock"
_LONGEST_SOCKET = 100
"""Characters; the kernel takes 107."""

_MOST_DRAIN = 86_400.0


@click.group("worker")
def command() -> None:
    """Run a node of a fleet.

    \b
    kabuild worker shim > /usr/local/bin/kabuild-worker-exec
    kabuild worker serve --signing_key=/etc/kabuild/node.key
    kabuild worker config systemd --host=fleet.example -o units
    """


command.add_command(config)


def _read_socket(_: click.Context, __: click.Parameter, text: str) -> Path:
    path = Path(text).absolute()
    if len(str(path)) > _LONGEST_SOCKET:
        raise click.BadParameter(f"must be at most {_LONGEST_SOCKET} characters, got '{path}'")
    return path


def _read_devices(_: click.Context, __: click.Parameter, text: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(part.isascii() and part.isdecimal() and len(part) < 5 for part in parts):
        raise click.BadParameter(f"must be numbers like 0,2, got '{text}'")
    return tuple(map(int, parts))


def _read_address(
    _: click.Context, __: click.Parameter, text: str | None
) -> tuple[str, int] | None:
    if text is None:
        return None
    host, _colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    number = int(port) if port.isascii() and port.isdecimal() and len(port) < 6 else -1
    if not host or not 0 <= number < 1 << 16:
        raise click.BadParameter(f"must be HOST:PORT, got '{text}'")
    return host, number


at_socket = click.option(
    "--socket",
    default=SOCKET,
    callback=_read_socket,
    show_default=True,
    metavar="PATH",
    help="Where engines reach this node.",
)


@command.command("serve")
@click.option(
    "--signing_key",
    type=InputPath(),
    required=True,
    help="Sign results with this Ed25519 key of OpenSSH.",
)
@at_socket
@click.option(
    "--platform",
    default="cpu",
    show_default=True,
    metavar="NAME[:ARCH]",
    help="Offer this platform besides cpu.",
)
@click.option(
    "--devices",
    default="",
    callback=_read_devices,
    metavar="NUMBERS",
    help="Use only these devices, such as 0,2.  [default: all of one model]",
)
@click.option(
    "--jobs",
    "-j",
    type=JOBS,
    metavar="N",
    help="Use at most N cores for actions.  [default: all cores]",
)
@click.option(
    "--drain",
    type=click.FloatRange(min=0.0, max=_MOST_DRAIN),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="When stopped, wait this long for running actions.",
)
@click.option(
    "--metrics",
    callback=_read_address,
    metavar="HOST:PORT",
    help="Serve metrics for Prometheus at this address, under /metrics; port 0 is any.",
)
def serve(
    *,
    signing_key: Path,
    socket: Path,
    platform: str,
    devices: tuple[int, ...],
    jobs: int | None,
    drain: float,
    metrics: tuple[str, int] | None,
) -> None:
    """Run the actions of engines in sandboxes, and sign results.

    \b
    kabuild worker serve --signing_key=node.key --platform=cuda

    Offers the toolchains of the workspace. Ctrl-C or SIGTERM ends it
    once the running actions are done.
    Exits with 36 if this machine has no sandboxes.
    """
    signer = _signer(signing_key)
    from kabuild.sharing import require_packages

    if metrics:
        require_packages("--metrics", "prometheus_client")
    from kabuild.cli.session import interruptible
    from kabuild.execution.host import cpus
    from kabuild.loading import Loader, find_workspace, load_workspace
    from kabuild.store import Store
    from kabuild.worker.service import NodeSettings, serve

    settings = NodeSettings(socket, platform, devices, jobs or cpus(), drain, metrics)
    loader = Loader(load_workspace(find_workspace(Path.cwd())))
    with interruptible() as stop, Store.open(warn=_tell) as store:
        serve(loader, store, settings, signer, stopped=stop.is_set, said=_tell)


@command.command("shim")
@at_socket
def print_shim(*, socket: Path) -> None:
    """Print the program that engines start. It needs nothing but Python.

    \b
    kabuild worker shim > kabuild-worker-exec
    install -m 755 kabuild-worker-exec /usr/local/bin/
    """
    from kabuild.worker.shim_text import shim_text

    click.echo(shim_text(str(socket)), nl=False)


def _signer(path: Path) -> Signer:
    from kabuild.base.reading import read_bounded
    from kabuild.sharing import MOST_BYTES, require_packages

    require_packages("kabuild worker serve")
    from kabuild.remote.signing import Signer

    try:
        return Signer.of(read_bounded(path.expanduser(), MOST_BYTES))
    except (OSError, RuntimeError, ValueError) as error:  # RuntimeError: `~` of nobody
        why = getattr(error, "strerror", None) or str(error)
        raise UsageError(Reason.BAD_FLAG, f"--signing_key: {path}: {why}") from None


def _tell(text: str) -> None:
    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    sys.stderr.write(f"{stamp} {text}\n")
    sys.stderr.flush()
