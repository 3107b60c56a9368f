"""What differs between fleets."""

from __future__ import annotations

from dataclasses import dataclass

from kabuild.execution.wire import PROGRAM
from kabuild.worker.shim_text import SOCKET

_TLS = {"server-cert": "ca.pem", "client-key": "node.key", "client-cert": "node.pem"}


@dataclass(frozen=True)
class Site:
    """One fleet, as the templates see it. The texts are put into files unquoted.

    Attributes:
        host, port: of the server.
        tls: whether server and nodes show certificates, which are in ``/etc/kabuild/tls``.
        database: PostgreSQL, as SQLAlchemy names it.
        pool: the property by which actions reach the nodes.
        platform: offered by the nodes besides ``cpu``, as ``worker serve --platform`` has it.
        gpus: devices of one node.
        groups: whose members may use the devices, separated by spaces.
        resource: the devices, as Kubernetes names them.
        jobs: CPU slots of one node.
        workspace: the workspace's directory on a node.
        kabuild: the program on a node.
        buildbox: the directory of the programs of buildbox on a node.
        registry: where Kubernetes finds the images.
    """

    host: str
    port: int = 50051
    tls: bool = False
    database: str = "postgresql+psycopg2:///kabuild?host=/run/postgresql"
    pool: str = "cpu"
    platform: str = "cpu"
    gpus: int = 0
    groups: str = "video"
    resource: str = ""
    jobs: int = 8
    workspace: str = "/srv/kabuild"
    kabuild: str = "/opt/kabuild/bin/kabuild"
    buildbox: str = "/usr/bin"
    registry: str = "registry.example"
    socket: str = SOCKET
    program: str = PROGRAM
    bgd: str = "/opt/buildgrid/bin/bgd"
    quota: str = "50G"
    storage: str = "/var/lib/kabuild-server"

    @property
    def url(self) -> str:
        """The server, as buildbox names it."""
        return f"{'https' if self.tls else 'http'}://{self.host}:{self.port}"

    @property
    def vendor(self) -> str:
        """The platform's name, without an architecture."""
        return self.platform.partition(":")[0]

    @property
    def concurrent(self) -> int:
        """Actions that a node's engine takes at once: one more than devices, or one per slot."""
        return self.gpus + 1 if self.gpus else self.jobs

    def certificates(self, service: str) -> tuple[str, ...]:
        """Flags of buildbox-casd (``cas``) and buildbox-worker (``bots``); empty without TLS."""
        given = _TLS.items() if self.tls else ()
        return tuple(f"--{service}-{flag}=/etc/kabuild/tls/{file}" for flag, file in given)
