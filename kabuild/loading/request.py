"""Requests: what a user asks for, before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from kabuild.model.gate import Pick

BAD_HEADER = "--remote_header must be NAME=VALUE or NAME=env:VARIABLE"


@dataclass(frozen=True)
class RemoteRequest:
    """A shared cache and a fleet as flags name them; nothing is read or asked yet.

    ``url`` is the cache's, ``executor`` the fleet's; one may be empty. ``header`` has
    ``NAME=VALUE`` or ``NAME=env:VARIABLE``; paths are those of PEM files and of the key that signs
    what is sent. ``timeout`` and ``queue_timeout``, which an action may wait for a worker, are in
    seconds. ``jobs`` is how many actions the fleet runs at once; workers start ``program``.
    """

    url: str = ""
    executor: str = ""
    instance: str = ""
    header: tuple[str, ...] = field(default=(), repr=False)
    tls_certificate: Path | None = None
    tls_client_certificate: Path | None = None
    tls_client_key: Path | None = None
    timeout: float = 60.0
    retries: int = 5
    accept: bool = True
    upload: bool = False
    signing_key: Path | None = None
    queue_timeout: float = 600.0
    jobs: int = 200
    program: str = ""


@dataclass(frozen=True)
class Request:
    """What a user asked for: the flags of ``test`` and ``build``.

    None stands for the default of the workspace, or else of kabuild. ``gates`` are the words of
    ``--gates``; those that have no name there are what ``pick`` says. ``locked`` refuses toolchains
    that the lock does not hold as they are; ``fetch`` allows to get pinned ones that are not in the
    store. ``devices`` are numbers; empty means all. Without ``read_cached_gates`` no gate's cached
    result is read, and with ``fresh`` none of a gate that was asked for.
    """

    patterns: tuple[str, ...]
    cwd: Path
    judge: bool = True
    platform: str | None = None
    devices: tuple[int, ...] = ()
    agent: str | None = None
    solution: Path | None = None
    policy: str | None = None
    salt_file: Path | None = None
    gates: tuple[str, ...] = ()
    pick: Pick = Pick.USUAL
    samples: int | None = None
    trials: int = 1
    agent_rerun: int = 0
    tags: str = ""
    jobs: int | None = None
    keep_going: bool = True
    read_cached_gates: bool = True
    fresh: bool = False
    runs_per_gate: int = 1
    hermetic: bool = True
    keep_sandboxes: bool = False
    locked: bool = False
    fetch: bool = True
    remote: RemoteRequest | None = None
