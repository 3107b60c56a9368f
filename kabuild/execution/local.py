"""Runs commands on this machine, in sandboxes."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Protocol

from kabuild.base.errors import AnalysisError, Interrupted, Reason, SandboxError
from kabuild.execution.devices import DevicePool
from kabuild.execution.prepared import BASE_ENV, Prepared
from kabuild.execution.secrets import Secrets
from kabuild.execution.shipped import shipped_sources
from kabuild.execution.strategy import Execution
from kabuild.model.action import OUTPUT_ROOT, Action, Toolchain
from kabuild.model.device import Exposure
from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, OutputFile
from kabuild.sandbox.run import UnsavedOutputsError
from kabuild.sandbox.spec import (
    Completed,
    Limit,
    OutputKind,
    SandboxLimits,
    SandboxSpec,
)
from kabuild.store.cas import Cas
from kabuild.store.faults import store_error, writing
from kabuild.store.merkle import Directory
from kabuild.store.store import Store

_TOKEN = re.compile(r"\$\{toolchain:([^}]*)\}")


class Spawner(Protocol):
    """Runs one command in a sandbox; see ``kabuild.sandbox``."""

    def run(self, spec: SandboxSpec, cancel: Event) -> Completed:
        """How the command ended. Raises SandboxError when it could not be started."""
        ...


class LocalStrategy:
    """Stages inputs by hard link, runs the command in a sandbox, and stores its outputs.

    Stages lie in the store's scratch directory: a killed process leaves nothing that the next one
    does not sweep. With ``debug`` they are kept below the store's ``debug/`` instead, and ``warn``
    is told where. Without ``isolate``, or if the machine refuses namespaces, commands run with
    limits but without namespaces; ``sandboxed`` ones do not run at all. ``devices`` are those that
    actions may use. ``intact`` is asked about each toolchain before a command runs with it.
    """

    def __init__(
        self,
        store: Store,
        spawner: Spawner,
        *,
        debug: bool = False,
        isolate: bool = True,
        warn: Callable[[str], None] = lambda _: None,
        devices: DevicePool | None = None,
        intact: Callable[[Toolchain], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._spawner = spawner
        self._debug = debug
        self._isolate = isolate
        self._warn = warn
        self._devices = devices or DevicePool()
        self._intact = intact
        self._bare: str | None = None

    def hermetic(self) -> bool:
        """Whether commands see only their inputs; the machine is asked once."""
        if self._bare is None:
            self._bare = (
                _refusal() if self._isolate else "actions run without sandboxes, as requested"
            )
            if self._bare:
                self._warn(
                    f"{self._bare}: commands can see and change this machine's files, and their "
                    "results are not hermetic and are kept separate"
                )
        return not self._bare

    def run(self, prepared: Prepared, cancel: Event) -> Execution:
        """Run the command; see Strategy. Raises what ``intact`` does."""
        action = prepared.action
        if action.sandboxed and not self.hermetic():
            raise self._no_sandbox()
        for toolchain in action.toolchains:
            self._intact(toolchain)
        stage = self._store.scratch.path("stage")
        try:
            secrets = Secrets.of(action)
            self._fill(stage, prepared.root)
            timed = action.resources.timed
            using = self._devices.using(prepared.device, timed=timed)
            with using as exposure, self._journal(prepared, secrets) as journal:
                try:
                    spec = _spec(prepared, stage, secrets, exposure, journal)
                    completed = self._spawner.run(spec, cancel)
                except UnsavedOutputsError as error:
                    raise store_error(error, str(self._store.root)) from error
            if completed.cancelled:
                raise Interrupted(Reason.INTERRUPTED, f"{action.label} was interrupted")
            return self._store_result(action, completed, stage / "collected", secrets)
        finally:
            self._clear(action, stage)

    def _no_sandbox(self) -> SandboxError:
        return SandboxError(
            Reason.SANDBOX_UNAVAILABLE,
            f"an agent's session needs a sandbox, and {self._bare}",
            hint="'kabuild doctor' says why there is none, and how to get one"
            if self._isolate
            else "leave out --sandbox=none",
        )

    @contextlib.contextmanager
    def _journal(self, prepared: Prepared, secrets: Secrets) -> Iterator[Path | None]:
        """The file that survives an interrupted run, if the action has a journal."""
        if not (prepared.action.journal and prepared.hermetic):
            yield None
            return
        with self._store.journals.lend(prepared.key.hash) as journal:
            try:
                yield journal
            finally:
                if journal is not None:
                    secrets.redact_file(journal)

    def _fill(self, stage: Path, root: Directory) -> None:
        """Lay out the input root in a fresh directory. Raises BlobMissingError, StoreError."""
        with writing(str(self._store.root)):
            (stage / "exec" / OUTPUT_ROOT).mkdir(parents=True)
            (stage / "collected").mkdir()
            made = {stage / "exec"}
            for path, node in root.walk():
                target = stage / "exec" / path
                if target.parent not in made:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    made.add(target.parent)
                self._store.cas.link_to(node.digest, target)

    def _store_result(
        self, action: Action, completed: Completed, collected: Path, secrets: Secrets
    ) -> Execution:
        for path in collected.rglob("*") if action.secrets else ():
            if path.is_file():
                secrets.redact_file(path)
        cas = self._store.cas
        files: list[OutputFile] = []
        directories: list[str] = []
        fault = _fault(action, completed)
        for output in completed.outputs:
            name = output.path.removeprefix(f"{OUTPUT_ROOT}/")
            if output.kind is OutputKind.FILE:
                files.append(_store_file(cas, collected / output.path, name))
            elif output.kind is OutputKind.DIRECTORY:
                directories.append(name)
                files.extend(_store_directory(cas, collected / output.path, name))
            elif output.kind is OutputKind.REFUSED:
                fault = fault or f"output '{name}' cannot be kept: {output.reason}"
        code = completed.exit_code
        result = ActionResult(
            exit_code=128 + (completed.signal or 0) if code is None else code,
            files=tuple(sorted(files, key=lambda file: file.path)),
            stdout=_store_stream(cas, secrets.redact(completed.stdout)),
            stderr=_store_stream(cas, secrets.redact(completed.stderr)),
            seconds=completed.wall_seconds,
            hermetic=completed.hermetic,
            directories=tuple(sorted(directories)),
        )
        return Execution(result, fault)

    def _clear(self, action: Action, stage: Path) -> None:
        if not self._debug:
            shutil.rmtree(stage, ignore_errors=True)
        elif stage.exists():
            name = str(action.label).strip("/").replace("/", "_").replace(":", "_")
            kept = self._store.scratch.keep(stage, self._store.root / "debug" / name)
            self._warn(f"the sandbox of {action.label} is kept at {kept}")


def _refusal() -> str:
    """Why this machine refuses namespaces; empty if it grants them."""
    from kabuild.sandbox.namespaces import probe  # a null build does not need it

    refusal = probe()
    if refusal is None:
        return ""
    return f"this machine does not allow sandboxes ({refusal}; see kabuild doctor)"


def _spec(
    prepared: Prepared, stage: Path, secrets: Secrets, exposure: Exposure, journal: Path | None
) -> SandboxSpec:
    """The sandbox's specification, with this machine's paths instead of tokens."""
    action = prepared.action
    homes = {toolchain.name: toolchain.home for toolchain in action.toolchains}

    def home(match: re.Match[str]) -> str:
        if match[1] not in homes:
            raise AnalysisError(
                Reason.NO_TOOLCHAIN,
                f"{action.label} uses toolchain '{match[1]}', which it does not declare",
            )
        return homes[match[1]]

    env = {**BASE_ENV, **dict(exposure.env), **dict(action.env)}
    trees = dict.fromkeys(mount for tool in action.toolchains for mount in tool.mounts)
    limits = action.limits
    try:
        return SandboxSpec(
            argv=tuple(_TOKEN.sub(home, argument) for argument in action.argv),
            env={name: _TOKEN.sub(home, value) for name, value in env.items()},
            input_dir=stage / "exec",
            outputs=tuple(f"{OUTPUT_ROOT}/{path}" for path in action.outputs),
            collect_into=stage / "collected",
            mounts=tuple(dict.fromkeys(exposure.mounts)),
            trees=tuple(trees),
            journal=journal,
            limits=SandboxLimits(
                wall_seconds=limits.timeout,
                memory_bytes=limits.memory,
                processes=limits.processes,
                scratch_bytes=limits.scratch,
            ),
            preload=action.preload,
            sources=shipped_sources(prepared) if action.preload else {},
            nestable=action.nestable,
            network=action.network,
            own_env=dict(exposure.selection),
            secrets=secrets.values,
            hermetic=prepared.hermetic,
        )
    except ValueError as error:
        raise AnalysisError(Reason.BAD_RULE, f"{action.label}: {error}") from error


def _fault(action: Action, completed: Completed) -> str:
    """Why the command was stopped from outside, for people."""
    limits = action.limits
    wording = {
        Limit.WALL: f"timed out after {limits.timeout:g} s",
        Limit.MEMORY: f"used more than its {limits.memory >> 20} MiB of memory",
        Limit.PROCESSES: f"started more than its {limits.processes} processes",
        Limit.CPU: "exceeded its limit of CPU time",
        Limit.FILE: "exceeded its limit of file size",
        Limit.OUTPUT: "exceeded its limit of output to stdout and stderr",
    }
    if completed.limit:
        return wording[completed.limit]
    return f"killed by signal {completed.signal}" if completed.signal else ""


def _store_file(cas: Cas, path: Path, name: str) -> OutputFile:
    executable = os.access(path, os.X_OK)
    return OutputFile(name, cas.put_file(path, move=True), executable)


def _store_directory(cas: Cas, directory: Path, name: str) -> list[OutputFile]:
    return [
        _store_file(cas, path, f"{name}/{path.relative_to(directory)}")
        for path in sorted(directory.rglob("*"))
        if not path.is_dir()
    ]


def _store_stream(cas: Cas, data: bytes) -> Digest | None:
    return cas.put(data) if data else None
