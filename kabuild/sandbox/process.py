"""Running commands in sandboxes, from any thread.

A ``Spawner`` owns zygotes (``zygote.py``): one without imports, which starts programs, and one
for each interpreter, set of preloaded modules and environment. A run is one message to a
zygote, then a wait for three descriptors: stdout, stderr and the supervisor's report.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kabuild.base.errors import Reason, SandboxError
from kabuild.sandbox.rootfs import system_binds
from kabuild.sandbox.run import Cancel, Ended, Run, SupervisorLost
from kabuild.sandbox.spec import (
    EXEC_ROOT,
    JOURNAL,
    OUTPUT_ROOT,
    Completed,
    Limit,
    Output,
    OutputKind,
    SandboxSpec,
)
from kabuild.sandbox.zygote_process import PreloadRefused, ZygoteLost, ZygoteProcess

_PYTHON = re.compile(r"python\d*(\.\d+)*")
_SCRATCH = (f"{EXEC_ROOT}/{OUTPUT_ROOT}", "/tmp", "/dev/shm")  # noqa: S108 - inside the sandbox
_NAMES_OF_HOSTS = (
    *("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf"),
    *("/etc/ssl", "/etc/pki", "/etc/ca-certificates"),
)
_MAX_PRELOADED = 4
_STARTS = 2

_Key = tuple[str, tuple[str, ...], tuple[tuple[str, str], ...]]


class _Either:
    """A cancellation that is set if either of two is."""

    def __init__(self, first: Cancel, second: Cancel | None) -> None:
        self._first = first
        self._second = second

    def is_set(self) -> bool:
        return self._first.is_set() or (self._second is not None and self._second.is_set())


class Spawner:
    """Runs commands in sandboxes; a context manager. ``run`` may be called by several threads.

    Zygotes start when they are first needed. At most four with preloaded modules are kept,
    each as large as its modules; closing the spawner ends them, and all that still runs. So
    does the death of this process, however sudden.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._zygotes: dict[_Key, ZygoteProcess] = {}  # least recently used first
        self._ids = count()
        self._system = [(bind.source, bind.target) for bind in system_binds()]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all zygotes and every run: each is cancelled, or raises ``SandboxError``."""
        self._closed.set()
        with self._lock:
            zygotes, self._zygotes = list(self._zygotes.values()), {}
        for zygote in zygotes:
            zygote.close()

    def run(self, spec: SandboxSpec, cancel: Cancel | None = None) -> Completed:
        """Run one command to its end.

        ``cancel`` (``threading.Event`` will do) is polled 20 times a second; once it is set
        the tree is killed and the result says ``cancelled``. Raises ``SandboxError`` when the
        machine failed: no sandbox, a zygote that died twice; and ``UnsavedOutputsError`` when
        ``collect_into`` does not take the outputs.
        """
        for start in range(_STARTS):
            try:
                return self._run_once(spec, cancel)
            except ZygoteLost as lost:
                if start == _STARTS - 1:
                    raise SandboxError(Reason.SANDBOX_FAILED, str(lost)) from lost
            except SupervisorLost as lost:
                raise SandboxError(Reason.SANDBOX_FAILED, str(lost)) from lost
        raise AssertionError("unreachable")

    def _run_once(self, spec: SandboxSpec, cancel: Cancel | None) -> Completed:
        with self._zygote(spec) as (zygote, in_place), _exec_root(spec) as root:
            order = self._order(spec, root, in_place=in_place)
            try:
                unwanted = _Either(self._closed, cancel)
                ended = Run(zygote, order, spec.collect_into, unwanted).wait()
            except SupervisorLost:
                zygote.check_alive()
                raise
        return _completed(spec, ended)

    @contextlib.contextmanager
    def _zygote(self, spec: SandboxSpec) -> Iterator[tuple[ZygoteProcess, bool]]:
        """A ready zygote for ``spec``, and whether the script can run in a copy of it."""
        keys: list[_Key] = [(sys.executable, (), ())]
        if _can_run_in_place(spec):
            keys.insert(0, (spec.argv[0], spec.preload, tuple(sorted(spec.env.items()))))
        for key in keys:
            zygote = self._take(key)
            try:
                zygote.start()
                yield zygote, bool(key[1])
            except PreloadRefused:
                continue  # a hint that does not hold: run cold
            except ZygoteLost:
                self._drop(key, zygote)
                raise
            else:
                return
            finally:
                with self._lock:
                    zygote.users -= 1

    def _take(self, key: _Key) -> ZygoteProcess:
        with self._lock:
            if self._closed.is_set():
                raise SandboxError(Reason.SANDBOX_FAILED, "the spawner was closed")
            zygote = self._zygotes.pop(key, None) or ZygoteProcess(*_start_arguments(key))
            self._zygotes[key] = zygote
            zygote.users += 1
            surplus = self._surplus()
        for idle in surplus:
            idle.close()
        return zygote

    def _surplus(self) -> list[ZygoteProcess]:
        """Forget idle zygotes with preloaded modules beyond the number kept; the oldest first."""
        preloaded = [key for key in self._zygotes if key[1]]
        idle = [key for key in preloaded if not self._zygotes[key].users]
        return [self._zygotes.pop(key) for key in idle[: max(0, len(preloaded) - _MAX_PRELOADED)]]

    def _drop(self, key: _Key, zygote: ZygoteProcess) -> None:
        with self._lock:
            if self._zygotes.get(key) is zygote:
                del self._zygotes[key]
        zygote.close()

    def _source(self, tree: str) -> str:
        """The host path to show for a tree; the system's own links exist already."""
        ours = any(Path(tree).is_relative_to(target) for _, target in self._system)
        return tree if ours else os.path.realpath(tree)

    def _order(self, spec: SandboxSpec, root: str, *, in_place: bool) -> dict[str, Any]:
        """The message to the zygote (see ``zygote``)."""
        mounts = [(mount, mount) for mount in spec.mounts]
        mounts += [(self._source(tree), tree) for tree in spec.trees]
        if spec.network:
            mounts += [(path, path) for path in _NAMES_OF_HOSTS if Path(path).exists()]
        journal = [(str(spec.journal), JOURNAL, True)] if spec.journal else []
        return {
            "id": next(self._ids),
            "argv": list(spec.argv),
            "env": {**spec.env, **spec.own_env, **spec.secrets},
            "in_place": in_place,
            "hermetic": spec.hermetic,
            "nestable": spec.nestable,
            "network": spec.network,
            "root": root,
            "input_dir": str(spec.input_dir),
            "sources": dict(spec.sources) if in_place and spec.hermetic else {},
            "binds": [*self._system, *mounts, (str(spec.input_dir), EXEC_ROOT), *journal],
            "scratch": _SCRATCH,
            "outputs": list(spec.outputs),
            "limits": vars(spec.limits),
        }


def _start_arguments(key: _Key) -> tuple[str, tuple[str, ...], dict[str, str]]:
    interpreter, preload, env = key
    return interpreter, preload, dict(env)


def _can_run_in_place(spec: SandboxSpec) -> bool:
    """Whether the command is a Python script that a preloaded interpreter can run.

    Options of the interpreter, and PYTHONPATH, take effect only when one starts.
    """
    program, script = Path(spec.argv[0]), spec.argv[1:2]
    return (
        bool(spec.preload)
        and program.is_absolute()
        and _PYTHON.fullmatch(program.name) is not None
        and bool(script)
        and not script[0].startswith("-")
        and "PYTHONPATH" not in spec.env
    )


@contextlib.contextmanager
def _exec_root(spec: SandboxSpec) -> Iterator[str]:
    """The path of the input tree as the command sees it, with its directory for outputs."""
    if spec.hermetic:
        (spec.input_dir / OUTPUT_ROOT).mkdir(exist_ok=True)
        yield EXEC_ROOT
        return
    root = Path(tempfile.mkdtemp(prefix="kabuild-exec-"))
    try:
        for entry in spec.input_dir.resolve().iterdir():
            if entry.name != OUTPUT_ROOT:
                (root / entry.name).symlink_to(entry)
        (root / OUTPUT_ROOT).mkdir()
        yield str(root)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _completed(spec: SandboxSpec, ended: Ended) -> Completed:
    report = ended.report
    status, limit = report["status"], report["limit"]
    killed = status is None  # by the supervisor, not by itself
    code = -signal.SIGKILL if killed else os.waitstatus_to_exitcode(status)
    if killed and ended.flooded:
        limit = Limit.OUTPUT.value
    return Completed(
        exit_code=code if code >= 0 else None,
        signal=-code if code < 0 else None,
        limit=Limit(limit) if limit else None,
        cancelled=killed and ended.cancelled,
        stdout=ended.stdout,
        stderr=ended.stderr,
        wall_seconds=report["wall_seconds"],
        cpu_seconds=report["cpu_seconds"],
        max_rss_bytes=report["max_rss_bytes"],
        outputs=tuple(
            Output(path, OutputKind(kind), reason) for path, kind, reason in report["outputs"]
        ),
        hermetic=spec.hermetic,
    )
