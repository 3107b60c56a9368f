"""What ``analyze --arch`` adds: how many waves of each kernel a GPU holds at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kabuild.base.errors import KabuildError, Reason, UsageError
from kabuild.base.suggest import suggest
from kabuild.builder import Builder
from kabuild.loading.platform_index import PlatformIndex
from kabuild.loading.request import Request
from kabuild.model.gate import Pick
from kabuild.model.gate_result import GateResult
from kabuild.model.label import Label


@dataclass(frozen=True)
class Tables:
    """What the kernels of some tasks take of a processor of one architecture.

    Attributes:
        tasks: by task, ``{arch, kernels, unknown}``: the compiler's tables, or else why not.
        why: for all other tasks.
    """

    arch: str
    tasks: Mapping[Label, Mapping[str, Any]] = field(hash=False, default_factory=dict)
    why: str = "the task was not compiled"

    def of(self, task: Label) -> Mapping[str, Any]:
        """Those of one task."""
        return self.tasks.get(task) or _table(self.arch, (), self.why)


def platform_of(directory: Path, arch: str) -> str:
    """The platform that has an architecture, as ``--platform`` takes it. Raises UsageError."""
    index = PlatformIndex.around(directory)
    known = {
        own: f"{name}:{own}" for name in index.names() for own in index.spec(name).architectures
    }
    if arch in known:
        return known[arch]
    hint = suggest(arch, known) or f"known: {', '.join(known)}"
    raise UsageError(Reason.BAD_FLAG, f"unknown architecture '{arch}'", hint=hint)


def reported_arch(directory: Path, arch: str) -> str:
    """The architecture that devices report which run code for ``arch``: ``sm_90`` of ``sm_90a``."""
    index = PlatformIndex.around(directory)
    specs = (index.spec(name) for name in index.names())
    return next(spec.architectures[arch] for spec in specs if arch in spec.architectures)


def read_tables(builds: Builder, request: Request, platform: str) -> Tables:
    """Compile what ``request`` asks for, for the architecture of ``platform``.

    Where that is not possible, the tables say why.
    """
    arch = platform.partition(":")[2]
    compiling = replace(request, platform=platform, pick=Pick.COMPILED, gates=())
    try:
        summary = builds.run(compiling)
    except KabuildError as error:
        return Tables(arch, why=str(error).partition("\n")[0])
    return Tables(
        arch,
        {
            result.label: _of_gate(arch, gate)
            for result in summary.table
            for gate in result.gates.values()
        },
    )


def _of_gate(arch: str, gate: GateResult) -> Mapping[str, Any]:
    if not gate.passed:
        return _table(arch, (), f"{gate.title}: {gate.summary}")
    kernels = gate.data.get("kernels")
    return _table(arch, kernels or (), "" if kernels else "the compiler found no kernels")


def _table(arch: str, kernels: Any, unknown: str) -> Mapping[str, Any]:
    return {"arch": arch, "kernels": list(kernels), "unknown": unknown}
