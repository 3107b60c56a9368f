"""What agents and HIP toolchains tell the tasks that use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kabuild.rule import Artifact, Output, Provider, Toolchain


@dataclass(frozen=True)
class AgentInfo(Provider):
    """How an agent makes a solution: by replaying one, or by running a command.

    Attributes:
        replays: the directory below a task's ``solutions`` that is handed in; empty for the
            task's own kernel; None for an agent that runs.
        definition: the session's settings for it, as JSON.
        files: its own files, by path.
        prompt: its template for the prompt, where it has one.
        toolchains: its command line.
        secrets: variables of the user's environment that it gets.
        network: whether its session reaches what this machine reaches.
        seconds: its wall time.
        memory: in bytes, of all that it runs.
        resumes: whether it keeps a journal for the run after one that is interrupted.
    """

    name: str
    replays: str | None = None
    definition: Mapping[str, Any] = field(hash=False, default_factory=dict)
    files: Mapping[str, Artifact] = field(hash=False, default_factory=dict)
    prompt: Artifact | None = None
    toolchains: tuple[Toolchain, ...] = ()
    secrets: tuple[str, ...] = ()
    network: bool = False
    seconds: float = 0.0
    memory: int = 0
    resumes: bool = False


@dataclass(frozen=True)
class Sanitizing:
    """How a platform finds kernels' mistakes in memory and at barriers.

    Attributes:
        compile_argv: the command, with HIP's own inputs and toolchains.
        libraries: what an instrumented kernel needs, by file name.
        runner: the native program that calls it.
        outputs: what the command makes besides the library, for the judge.
        watcher: the tool that watches the kernel run; None if the kernel itself says it.
    """

    compile_argv: tuple[str, ...]
    libraries: Mapping[str, Output] = field(hash=False)
    runner: Output
    outputs: tuple[str, ...] = ()
    watcher: Toolchain | None = None


@dataclass(frozen=True)
class Counting:
    """How a platform counts kernels' memory accesses.

    Attributes:
        compile_argv: the command that compiles a counting kernel.
        inputs: what the command reads, besides the kernel.
        libraries: what such a kernel needs, by file name.
        runner: the native program that calls it.
        outputs: what the command makes besides the library, for the judge.
    """

    compile_argv: tuple[str, ...]
    inputs: Mapping[str, Artifact] = field(hash=False)
    libraries: Mapping[str, Output] = field(hash=False)
    runner: Output
    outputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class LaunchFilterInfo(Provider):
    """The launch filter of a device's driver, which decides which kernels run.

    Attributes:
        library: it has the driver's name and functions; None where every kernel may run.
    """

    library: Output | None


@dataclass(frozen=True)
class HipInfo(Provider):
    """HIP on one platform: how a kernel is compiled and what runs it.

    Attributes:
        compile_argv: the command; the gate appends what concerns one kernel.
        inputs: what the command reads, besides the kernel.
        toolchains: what the command runs with.
        libraries: shared libraries that a kernel needs, by file name.
        runner: the native program that loads a kernel and calls it.
        launch_filter: the library that stands before the device's driver and decides which
            kernels run; None if nothing does.
        sanitizing, counting: None if the platform has no such thing.
    """

    compile_argv: tuple[str, ...]
    inputs: Mapping[str, Artifact] = field(hash=False)
    toolchains: tuple[Toolchain, ...]
    libraries: Mapping[str, Output] = field(hash=False)
    runner: Output
    launch_filter: Output | None = None
    sanitizing: Sanitizing | None = None
    counting: Counting | None = None
