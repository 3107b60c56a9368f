"""The information that agents and HIP toolchains provide to the tasks that use them."""

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
        prompt: its template for the prompt, if it has one.
        toolchains: its command line.
        secrets: variables of the user's environment that it gets.
        network: whether its session can reach the network that this machine can reach.
        seconds: its wall time.
        memory: in bytes, of all the processes that it runs.
        resumes: whether it keeps a journal, so that a run can continue an interrupted one.
        counts: what counts memory accesses where the platform itself cannot; None for nothing.
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
    counts: HipInfo | None = None


@dataclass(frozen=True)
class Sanitizing:
    """How a platform finds memory errors and barrier errors in kernels.

    Attributes:
        compile_argv: the command, with HIP's own inputs and toolchains.
        libraries: libraries that an instrumented kernel needs, by file name.
        runner: the native program that calls it.
        outputs: further outputs of the command besides the library, for the judge.
        watcher: the tool that watches the kernel run; None if the kernel itself reports errors.
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
        inputs: the command's inputs besides the kernel.
        libraries: libraries that such a kernel needs, by file name.
        runner: the native program that calls it.
        outputs: further outputs of the command besides the library, for the judge.
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
        library: it has the driver's name and functions; None if every kernel may run.
    """

    library: Output | None


@dataclass(frozen=True)
class HipInfo(Provider):
    """HIP on one platform: how a kernel is compiled and what runs it.

    Attributes:
        compile_argv: the command; the gate appends the arguments for one kernel.
        inputs: the command's inputs besides the kernel.
        toolchains: the command's toolchains.
        libraries: shared libraries that a kernel needs, by file name.
        runner: the native program that loads a kernel and calls it.
        launch_filter: the library in front of the device's driver that decides which kernels
            run; None if there is none.
        sanitizing, counting: None if the platform does not support it.
        alone: the native program that calls a kernel once, for a profiler; None on ``cpu``.
    """

    compile_argv: tuple[str, ...]
    inputs: Mapping[str, Artifact] = field(hash=False)
    toolchains: tuple[Toolchain, ...]
    libraries: Mapping[str, Output] = field(hash=False)
    runner: Output
    launch_filter: Output | None = None
    sanitizing: Sanitizing | None = None
    counting: Counting | None = None
    alone: Output | None = None
