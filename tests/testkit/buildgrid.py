"""A real fleet: BuildGrid on PostgreSQL, buildbox-workers, and nodes; each part may be killed."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from kabuild.worker.setup import Site, files_of
from tests.testkit.signers import private_key
from tests.testkit.workers import NODE, install_program

PROGRAMS = ("bgd", "buildbox-casd", "buildbox-worker", "buildbox-run-hosttools", "psql")
VARIABLE = "KABUILD_FLEET"
GET_IT = "'make fleet' gets BuildGrid and buildbox; install PostgreSQL"
_PATIENCE = 60.0
_KEEPALIVE = "bot-session-keepalive-timeout: "


def lacking() -> str:
    """Why there is no BuildGrid here; empty if there is one."""
    if not os.environ.get(VARIABLE):
        return "takes minutes: 'make fleet' runs it"
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    absent += [] if _postgres() else ["initdb"]
    return f"not found: {', '.join(absent)}. {GET_IT}" if absent else ""


def _postgres() -> Path | None:
    """The directory of PostgreSQL's programs, which distributions keep off the search path."""
    found = [Path(name).parent for name in (shutil.which("pg_ctl"), shutil.which("initdb")) if name]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((path for path in found if (path / "postgres").exists()), None)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Supervised:
    """A process that is started again whenever it ends; ``kill`` ends it with its children."""

    def __init__(self, argv: Sequence[str], log: Path, cwd: Path) -> None:
        self._argv, self._log, self._cwd = [*argv], log, cwd
        self._ending = threading.Event()
        self._process = self._start()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def kill(self) -> None:
        """It comes back by itself."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        self._ending.set()
        self.kill()
        self._thread.join(_PATIENCE)

    def _start(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                self._argv, cwd=self._cwd, stdout=log, stderr=log, start_new_session=True
            )

    def _watch(self) -> None:
        while True:
            self._process.wait()
            if self._ending.wait(0.5):
                return
            self._process = self._start()


@dataclass
class RealFleet:
    """One server and some nodes.

    ``workers`` are the engine's on each node, ``nodes`` kabuild's; all are supervised. ``ports``
    are those of all processes of the server.
    """

    port: int
    program: Path
    server: Supervised
    workers: list[Supervised] = field(default_factory=list)
    nodes: list[Supervised] = field(default_factory=list)
    ports: list[int] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"


@contextmanager
def a_server(
    root: Path, program: Path, *, tls: Path | None = None, count: int = 1
) -> Iterator[RealFleet]:
    """BuildGrid below ``root``, without workers, which lets clients start ``program``.

    ``tls`` has the certificates of a server that wants one of its clients. ``count`` processes
    share one database and one storage; each has a port.
    """
    with TemporaryDirectory(prefix="kabuild-postgres-") as place, ExitStack() as stack:
        database = stack.enter_context(_database(Path(place)))
        subprocess.run(["bgd", "migrate", "apply", database], check=True, capture_output=True)
        ports = [free_port() for _ in range(count)]
        servers = []
        for number, port in enumerate(ports):
            site = Site(
                host="127.0.0.1",
                port=port,
                database=database,
                program=str(program),
                storage=str(root),
                tls=tls is not None,
            )
            text = files_of("buildgrid", site)["buildgrid.yaml"]
            text = text.replace("/etc/kabuild/tls", str(tls))
            config = root / f"bgd{number}.yml"
            config.write_text(text.replace(f"{_KEEPALIVE}10", f"{_KEEPALIVE}5"))  # dead ones: soon
            argv = ("bgd", "server", "start", str(config))
            servers.append(Supervised(argv, root / f"bgd{number}.log", root))
            stack.callback(servers[-1].end)
        for port in ports:
            _wait(partial(_answers, port), "the server does not answer")
        yield RealFleet(ports[0], program, servers[0], ports=ports)


@contextmanager
def a_real_fleet(root: Path, workspace: Path, *, pool: str = "cpu") -> Iterator[RealFleet]:
    """A fleet below ``root`` with one node, which serves ``workspace``; until the end."""
    with ExitStack() as stack:

        def supervise(name: str, *argv: str, cwd: Path = root) -> Supervised:
            one = Supervised(argv, root / f"{name}.log", cwd)
            stack.callback(one.end)
            return one

        door = root / "node.sock"
        program = install_program(root / "bin", door)
        fleet = stack.enter_context(a_server(root, program))
        key = root / "node.key"
        key.write_bytes(private_key(NODE))
        serve = (sys.executable, "-m", "kabuild", "worker", "serve", f"--signing_key={key}")
        os.environ["KABUILD_CACHE"] = str(root / "node")
        try:
            fleet.nodes.append(supervise("node", *serve, f"--socket={door}", cwd=workspace))
        finally:
            del os.environ["KABUILD_CACHE"]
        cas = f"unix:{root}/cas.sock"
        remote = f"http://127.0.0.1:{fleet.port}"
        supervise(
            "casd", "buildbox-casd", f"--bind={cas}", f"--cas-remote={remote}", f"{root}/wcas"
        )
        _wait(door.exists, "no node serves")
        for number in range(2):
            argv = [
                *("buildbox-worker", f"--bots-remote={remote}", f"--cas-remote={cas}"),
                f"--buildbox-run={shutil.which('buildbox-run-hosttools')}",
                *("--runner-arg=--clearenv", f"--runner-arg=--allow-executable={program}"),
                *("--platform", "OSFamily=linux", "--platform", f"pool={pool}"),
                *("--concurrent-jobs=2", "--retry-limit=60", "--retry-delay=500", f"n{number}"),
            ]
            fleet.workers.append(supervise(f"worker{number}", *argv))
        yield fleet


@contextmanager
def _database(data: Path) -> Iterator[str]:
    """A PostgreSQL of its own in ``data``, which every user can reach.

    It refuses to run as root, so then it is another user's.
    """
    programs = _postgres()
    assert programs
    port = free_port()
    other: list[str] = []
    if os.getuid() == 0:
        user = pwd.getpwnam("postgres")
        os.chown(data, user.pw_uid, user.pw_gid)
        other = ["runuser", "-u", "postgres", "--"]
    settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={data}"
    settings += " -c fsync=off"
    control = [*other, str(programs / "pg_ctl"), "-D", str(data / "db")]

    def run(*argv: str) -> None:
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    run(*other, str(programs / "initdb"), "-A", "trust", "-U", "postgres", str(data / "db"))
    run(*control, "-o", settings, "-l", str(data / "log"), "-w", "start")
    try:
        run("psql", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "-c", "create database b")
        yield f"postgresql+psycopg2://postgres@127.0.0.1:{port}/b"
    finally:
        run(*control, "-m", "immediate", "stop")


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1.0).close()
    except OSError:
        return False
    return True


def _wait(found: Callable[[], bool], problem: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not found():
        assert time.monotonic() < deadline, problem
        time.sleep(0.1)
