"""What agents and HIP toolchains tell the tasks that use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kabuild.rule import Artifact, Output, Provider, Toolchain


@dataclass(frozen=True)
class AgentInfo(Provider):
    """How an agent makes a solution.

    ``replays`` names the directory below a task's ``solutions`` that is handed in; empty
    means the task's own kernel.
    """

    name: str
    replays: str


@dataclass(frozen=True)
class HipInfo(Provider):
    """HIP on one platform: how a kernel is compiled and what runs it.

    Attributes:
        compile_argv: the command; the gate appends what concerns one kernel.
        inputs: what the command reads, besides the kernel.
        toolchains: what the command runs with.
        libraries: shared libraries that a kernel needs, by file name.
        runner: the native program that loads a kernel and calls it.
    """

    compile_argv: tuple[str, ...]
    inputs: Mapping[str, Artifact] = field(hash=False)
    toolchains: tuple[Toolchain, ...]
    libraries: Mapping[str, Output] = field(hash=False)
    runner: Output
