"""A single-threaded process that has modules imported and forks sandboxes on request.

Started by the spawner under the Python of a toolchain as package ``_kabuild_sandbox`` (see
``BOOTSTRAP``), so that nothing here is visible to scripts that run in place. It runs only
trusted code, and compiles only files that the spawner vouches for; every fork is confined before
it reads anything hostile. Ends when the spawner's end of the socket closes; every sandbox ends
with it.

Messages (``protocol``): the zygote says ``{"ready": true}`` or ``{"error": ...}`` once. The
spawner says ``{"run": ...}`` with the descriptors of control socket, stdout, stderr and
collection directory, or ``{"kill": id}``. A sandbox that cannot be set up is reported as
``{"error": ...}`` on its control socket.
"""

from __future__ import annotations

import gc
import importlib
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import protocol
from .bare import fork_bare
from .command import execute, run_script
from .compiled import CompiledFiles
from .huge_pages import use_huge_pages
from .inheritance import settle
from .limits import UNLIMITED, require_limits
from .namespaces import Bind, Limits, View, fork_contained
from .supervisor import Orders, supervise

BOOTSTRAP = """\
import sys, types
package = types.ModuleType("_kabuild_sandbox")
package.__path__ = [sys.argv[1]]
sys.modules[package.__name__] = package
from _kabuild_sandbox.zygote import main
main(int(sys.argv[2]), sys.argv[3:])
"""
"""``python -c BOOTSTRAP DIRECTORY SOCKET [MODULE...]`` is a zygote."""

_DATA_FACTOR = 4  # see SandboxLimits.memory_bytes
_OPEN_FILES = 4096
_STACK_BYTES = 16 << 20
_LOCKED_BYTES = 64 << 10  # what Linux has always granted: no machine has less
_QUEUED_SIGNALS = 1024


def main(channel_fd: int, preload: list[str]) -> None:
    """Import ``preload``, then serve requests from the socket ``channel_fd`` until it closes."""
    settle()
    channel = socket.socket(fileno=channel_fd)
    channel.set_inheritable(False)
    if "" in sys.path:
        sys.path.remove("")  # -c put the working directory there; a script's goes there later
    writes_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    gc.disable()  # it would look for garbage again and again, where everything stays
    try:
        for name in preload:
            importlib.import_module(name)
    except ImportError as error:
        protocol.send(channel, {"error": str(error)})
        return
    sys.dont_write_bytecode = writes_bytecode
    _keep_what_was_imported()
    gc.enable()
    gc.collect()
    gc.freeze()  # the collector would otherwise touch, hence copy, every page in every fork
    if preload:
        use_huge_pages()
    protocol.send(channel, {"ready": True})
    Zygote(channel).serve()


def _keep_what_was_imported() -> None:
    """Have no fork tidy up at its end what the preloaded modules made: torch does for 30 ms."""
    if weakref := sys.modules.get("weakref"):
        for finalizer in [*weakref.finalize._registry]:  # noqa: SLF001 - there is no public list
            finalizer.atexit = False


class Zygote:
    """The request loop."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)
        self._running: dict[int, tuple[int, int]] = {}  # pidfd -> (pid, id of the run)
        self._compiled = CompiledFiles()

    def serve(self) -> None:
        """Handle requests until the spawner is gone."""
        while True:
            for fd, _ in self._poll.poll():
                if fd != self._channel.fileno():
                    self._reap(fd)
                    continue
                request = protocol.receive(self._channel)
                if request is None:
                    return
                self._handle(*request)

    def _handle(self, message: dict[str, Any], fds: list[int]) -> None:
        if "kill" in message:
            for pid, run in self._running.values():
                if run == message["kill"]:
                    os.kill(pid, signal.SIGKILL)
            return
        run = message["run"]
        try:
            if self._compiled.add(run["input_dir"], run["root"], run["sources"]):
                gc.freeze()  # what is new, as main() does
            pid = start(run, self._compiled, fds)
        except OSError as error:
            with socket.socket(fileno=fds[0]) as control:
                protocol.send(control, {"error": error.strerror or str(error)})
            fds = fds[1:]
        else:
            pidfd = os.pidfd_open(pid)
            self._running[pidfd] = pid, run["id"]
            self._poll.register(pidfd, select.POLLIN)
        for fd in fds:
            os.close(fd)

    def _reap(self, pidfd: int) -> None:
        pid, _ = self._running.pop(pidfd)
        self._poll.unregister(pidfd)
        os.close(pidfd)
        os.waitpid(pid, 0)


def start(run: dict[str, Any], compiled: CompiledFiles, fds: Sequence[int]) -> int:
    """Fork the sandbox that ``run`` describes; the pid to wait for.

    ``fds`` are its control socket, stdout, stderr and collection directory. A script that runs in
    place takes files from ``compiled``. Raises ``OSError`` when the sandbox cannot be set up.
    """
    control, stdout, stderr, collect = fds
    limits = run["limits"]
    orders = Orders(
        root=run["root"],
        outputs=tuple(run["outputs"]),
        contained=run["hermetic"],
        wall_seconds=limits["wall_seconds"],
        cpu_seconds=limits["cpu_seconds"],
        memory_bytes=limits["memory_bytes"],
        processes=limits["processes"],
        scratch_bytes=limits["scratch_bytes"],
    )

    def work() -> int:
        os.dup2(stdout, 1)
        os.dup2(stderr, 2)
        os.close(stdout)
        os.close(stderr)
        for output in run["outputs"]:
            Path(output).parent.mkdir(parents=True, exist_ok=True)
        if run["in_place"]:
            return run_script(run["argv"], run["env"], compiled)
        return execute(run["argv"], run["env"])

    def watch(worker: int) -> int:
        return supervise(orders, worker, control, collect)

    kernel_limits = _kernel_limits(limits)
    require_limits(kernel_limits)
    keep, supervisor_fds = (stdout, stderr), (control, collect)
    if not run["hermetic"]:
        return fork_bare(
            run["root"],
            kernel_limits,
            work,
            keep_fds=keep,
            supervisor=watch,
            supervisor_fds=supervisor_fds,
        )
    return fork_contained(
        _view(run),
        kernel_limits,
        work,
        keep_fds=keep,
        seccomp="nestable" if run["nestable"] else "strict",
        supervisor=watch,
        supervisor_fds=supervisor_fds,
    )


def _view(run: dict[str, Any]) -> View:
    return View(
        binds=tuple(Bind(*bind) for bind in run["binds"]),
        tmpfs=tuple((path, run["limits"]["scratch_bytes"]) for path in run["scratch"]),
        cwd=run["root"],
        hostname="kabuild",
        network=run["network"],
    )


def _kernel_limits(limits: dict[str, Any]) -> Limits:
    """All kernel limits of a run; an unset one would depend on who started the build."""
    memory, cpu = limits["memory_bytes"], limits["cpu_seconds"]
    return Limits(
        memory_bytes=UNLIMITED if memory is None else memory * _DATA_FACTOR,
        cpu_seconds=UNLIMITED if cpu is None else int(cpu) + 1,
        processes=limits["processes"],
        file_bytes=limits["file_bytes"],
        open_files=_OPEN_FILES,
        stack_bytes=_STACK_BYTES,
        address_bytes=UNLIMITED,
        locked_bytes=_LOCKED_BYTES,
        queued_signals=_QUEUED_SIGNALS,
    )
