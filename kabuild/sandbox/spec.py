"""The request to a sandbox and its result, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from pathlib import Path, PurePosixPath

EXEC_ROOT = "/exec"
"""Working directory inside every sandbox: the input tree."""

JOURNAL = "/journal"
"""Where a command that keeps a journal finds it."""

OUTPUT_ROOT = "out"
"""The one writable directory of the input tree; every output lies below it."""


@unique
class Limit(Enum):
    """A limit that ended a process."""

    WALL = "wall"
    CPU = "cpu"
    MEMORY = "memory"
    PROCESSES = "processes"
    FILE = "file"
    OUTPUT = "output"


@dataclass(frozen=True)
class SandboxLimits:
    """What one process tree may use. Every limit but ``file_bytes`` is for the whole tree.

    ``memory_bytes`` counts anonymous and shared memory, sampled 20 times a second; what is
    preloaded counts too. A single process is refused address space for data beyond four times
    as much, so that one huge allocation fails at once. ``processes`` counts threads.
    ``scratch_bytes`` is the size of each private file system: ``out``, ``/tmp``, ``/dev/shm``;
    collected outputs together may have as much. ``output_bytes`` is kept of stdout and of
    stderr, the first and the last half; a tree that writes 64 times as much is ended.
    """

    wall_seconds: float = 600.0
    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    processes: int = 512
    file_bytes: int = 4 << 30
    scratch_bytes: int = 2 << 30
    output_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and value <= 0:
                raise ValueError(f"limit {name} must be positive, got {value}")


@dataclass(frozen=True)
class SandboxSpec:
    """One command, all that it sees, and where its outputs go.

    ``argv``          absolute program, or a name searched in the PATH of ``env``.
    ``env``           the whole environment: nothing is inherited.
    ``input_dir``     host directory, read-only at ``/exec``, the working directory. It must
                      hold an empty directory ``out``, or be writable so that one can be made.
    ``outputs``       paths relative to ``/exec``, all below ``out/``; their parent directories
                      exist when the command starts.
    ``collect_into``  existing host directory; output ``out/x`` is copied to ``out/x`` below it.
    ``mounts``        host files and devices, read-only at their own paths; links stay links.
    ``trees``         host directories, read-only at their own paths. In place of a link to one
                      is the directory, so that sandboxes within this one show it by that path.
    ``journal``       host file that the command may write, at ``/journal``; only in a sandbox.
    ``preload``       modules that a Python command may find imported already. It is a hint:
                      when ``argv`` is an absolute Python interpreter and a script, the script
                      runs in a copy of a process that has them. Commands with the same
                      interpreter, ``preload`` and ``env`` share that process, so keep
                      ``env`` the same for all of them.
    ``sources``       the SHA-256 of Python files in ``input_dir`` by their paths. That process
                      compiles them once for all of its scripts, so name trusted files only:
                      never one of a candidate. They are a hint, too.
    ``nestable``      the command is trusted and builds its own sandboxes.
    ``network``       the command reaches what this machine reaches, instead of nothing.
    ``own_env``       further variables, which may differ between commands that share a process.
    ``secrets``       further variables; they are kept from every process but the command's.
    ``hermetic``      ``False`` runs it without namespaces: only limits and a temporary
                      directory as ``/exec``. For machines that refuse namespaces.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    input_dir: Path
    outputs: tuple[str, ...]
    collect_into: Path
    mounts: tuple[str, ...] = ()
    trees: tuple[str, ...] = ()
    journal: Path | None = None
    limits: SandboxLimits = field(default_factory=SandboxLimits)
    preload: tuple[str, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    nestable: bool = False
    network: bool = False
    own_env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    hermetic: bool = True

    def __post_init__(self) -> None:
        if not self.argv or not self.argv[0]:
            raise ValueError("argv is empty")
        for output in self.outputs:
            parts = PurePosixPath(output).parts
            plain = str(PurePosixPath(output)) == output and ".." not in parts
            if not plain or len(parts) < 2 or parts[0] != OUTPUT_ROOT:
                raise ValueError(f"output {output!r} is not a plain path below {OUTPUT_ROOT}/")
        for mount in (*self.mounts, *self.trees):
            if not mount.startswith("/"):
                raise ValueError(f"mount {mount!r} is not an absolute path")


@unique
class OutputKind(Enum):
    """The kind of a collected output."""

    FILE = "file"
    DIRECTORY = "directory"
    MISSING = "missing"
    REFUSED = "refused"


@dataclass(frozen=True)
class Output:
    """One declared output. ``reason`` says what was wrong with a refused one."""

    path: str
    kind: OutputKind
    reason: str = ""


@dataclass(frozen=True)
class Completed:
    """How a command ended. A failing command is a result; failing to run it is an exception.

    Exactly one of ``exit_code`` and ``signal`` is set. 127 is the exit code of a program that
    cannot be started; stderr then says why. ``limit`` names the limit that ended the command;
    ``timed_out`` is true for the wall clock. ``cpu_seconds`` is that of all processes that
    were waited for; ``max_rss_bytes`` the largest resident size seen, libraries included.
    ``stdout`` and ``stderr`` hold a marker line where bytes were dropped.
    """

    exit_code: int | None
    signal: int | None
    limit: Limit | None
    cancelled: bool
    stdout: bytes
    stderr: bytes
    wall_seconds: float
    cpu_seconds: float
    max_rss_bytes: int
    outputs: tuple[Output, ...]
    hermetic: bool

    @property
    def timed_out(self) -> bool:
        """Whether the wall-clock limit ended the command."""
        return self.limit is Limit.WALL

    @property
    def ok(self) -> bool:
        """Whether the command exited with 0 by itself."""
        return self.exit_code == 0 and self.limit is None and not self.cancelled
