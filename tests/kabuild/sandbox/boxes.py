"""Short ways to run scripts in sandboxes."""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kabuild.sandbox import Cancel, Completed, SandboxLimits, SandboxSpec, Spawner
from kabuild.sandbox.namespaces import View, fork_contained, system_binds
from kabuild.sandbox.rootfs import Bind

ENV = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LC_ALL": "C.UTF-8"}
PYTHON_TREES = tuple(dict.fromkeys((sys.prefix, sys.base_prefix)))
QUICK = SandboxLimits(wall_seconds=60)


def view(**changes: Any) -> View:
    """What a Python process needs to see."""
    binds = (*system_binds(), *(Bind(tree, tree) for tree in PYTHON_TREES))
    return View(**{"binds": binds, "tmpfs": (("/tmp", 1 << 20),), "cwd": "/tmp", **changes})


def wait(pid: int) -> int:
    """Exit code of a child, or minus the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def call_in_fork(work: Callable[[], str]) -> str:
    """What ``work`` returns in a fork of this process that may change user, limits, anything."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, work().encode())
        except BaseException as error:  # noqa: BLE001 - reported to the parent
            os.write(write, f"failed: {error!r}".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode()
    os.waitpid(pid, 0)
    return text


def call_contained(work: Callable[[], str], **options: Any) -> str:
    """What ``work`` returns inside a sandbox; options are those of ``fork_contained``."""
    read, write = os.pipe()

    def child() -> int:
        os.write(write, work().encode())
        return 0

    seen = options.pop("view", None) or view()
    limits = options.pop("limits")
    pid = fork_contained(seen, limits, child, keep_fds=(write, 2), **options)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read().decode()
    assert wait(pid) == 0
    return text


def writable_settings() -> str:
    """Whether many settings of the kernel are visible, and which of them can be written."""
    writable = []
    settings = ["/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/proc/1/autogroup"]
    for directory, _, names in os.walk("/proc"):
        parts = directory.split("/")
        if len(parts) < 3 or not parts[2].isdecimal():
            settings += [f"{directory}/{name}" for name in names]
    for path in settings:
        with contextlib.suppress(OSError):
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
            writable.append(path)
    return repr([len(settings) > 500, writable])


@dataclass(frozen=True)
class Box:
    """Runs commands through one spawner, with inputs and outputs below ``directory``."""

    spawner: Spawner
    directory: Path
    hermetic: bool = True

    @property
    def inputs(self) -> Path:
        """The host directory that is ``/exec``."""
        return self.directory / "exec"

    @property
    def collected(self) -> Path:
        """Where outputs arrive."""
        return self.directory / "collected"

    def spec(self, *argv: str, env: Mapping[str, str] | None = None, **rest: Any) -> SandboxSpec:
        """A specification with everything but the command filled in."""
        self.inputs.mkdir(exist_ok=True)
        self.collected.mkdir(exist_ok=True)
        return SandboxSpec(
            argv=argv,
            env=ENV if env is None else env,
            input_dir=self.inputs,
            collect_into=self.collected,
            hermetic=self.hermetic,
            **{"outputs": (), "mounts": PYTHON_TREES, "limits": QUICK, **rest},
        )

    def run(self, *argv: str, cancel: Cancel | None = None, **rest: Any) -> Completed:
        """Run a command."""
        return self.spawner.run(self.spec(*argv, **rest), cancel)

    def shell(self, script: str, **rest: Any) -> Completed:
        """Run a shell script."""
        return self.run("/bin/sh", "-c", script, **rest)

    def python(self, source: str, *arguments: str, **rest: Any) -> Completed:
        """Run a Python script, the only input."""
        self.inputs.mkdir(exist_ok=True)
        (self.inputs / "script.py").write_text(textwrap.dedent(source))
        return self.run(sys.executable, "script.py", *arguments, **rest)
