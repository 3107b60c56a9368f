"""Limits of a sandbox, nesting, and all of it as an ordinary user."""

from __future__ import annotations

import errno
import os
import resource
import signal
from pathlib import Path
from types import SimpleNamespace

import pytest

from kabuild.sandbox import limits, namespaces, probe
from kabuild.sandbox.namespaces import Limits, View
from tests.kabuild.sandbox.boxes import call_contained, call_in_fork, writable_settings

pytestmark = pytest.mark.skipif(probe() is not None, reason=f"no namespaces: {probe()}")
NOBODY = 65534
NONE = Limits()


@pytest.mark.parametrize(
    ("limits", "kind", "expected"),
    [
        (Limits(memory_bytes=1 << 30), resource.RLIMIT_DATA, (1 << 30, 1 << 30)),
        (Limits(cpu_seconds=5), resource.RLIMIT_CPU, (5, 6)),
        (Limits(file_bytes=1 << 20), resource.RLIMIT_FSIZE, (1 << 20, 1 << 20)),
        (Limits(open_files=64), resource.RLIMIT_NOFILE, (64, 64)),
        (Limits(stack_bytes=1 << 20), resource.RLIMIT_STACK, (1 << 20, 1 << 20)),
        (NONE, resource.RLIMIT_CORE, (1, 1)),
    ],
)
def test_limits_are_set_and_cannot_be_raised(
    limits: Limits, kind: int, expected: tuple[int, int]
) -> None:
    def look() -> str:
        found = resource.getrlimit(kind)
        try:
            resource.setrlimit(kind, (expected[0], expected[1] + 1))
        except ValueError:
            return repr(found)
        return "raised"

    assert call_contained(look, limits=limits) == repr(expected)


def test_a_limit_above_the_callers_own_is_the_callers() -> None:
    def work() -> str:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))
        return call_contained(
            lambda: repr(resource.getrlimit(resource.RLIMIT_NOFILE)), limits=Limits(open_files=5000)
        )

    assert call_in_fork(work) == "(100, 100)"


def unprivileged() -> None:
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)


@pytest.mark.skipif(os.getuid() != 0, reason="everything here runs unprivileged already")
class TestAsNobody:
    """Root may become an ordinary user; the whole sandbox must work for one."""

    def test_a_sandbox_works(self) -> None:
        def work() -> str:
            unprivileged()

            def look() -> str:
                return repr((os.getuid(), [*Path("/tmp").iterdir()], Path("/usr/bin").is_dir()))

            return call_contained(look, view=View(binds=namespaces.system_binds()), limits=NONE)

        assert call_in_fork(work) == repr((1000, [], True))

    def test_sandboxes_nest(self) -> None:
        def work() -> str:
            unprivileged()

            def inner() -> str:
                return call_contained(lambda: "inner", view=View(), limits=NONE)

            return call_contained(inner, view=View(), limits=NONE, seccomp="nestable")

        assert call_in_fork(work) == "inner"

    def test_settings_of_the_host_are_read_only(self) -> None:
        def work() -> str:
            unprivileged()
            return call_contained(writable_settings, view=View(), limits=NONE)

        assert call_in_fork(work) == "[True, []]"

    def test_the_kernel_counts_its_processes(self) -> None:
        """And only those of this sandbox: others of the same user do not matter."""

        def forks() -> str:
            for count in range(64):
                try:
                    if os.fork() == 0:
                        signal.pause()
                except BlockingIOError:
                    return str(count)
            return "endless"

        def work() -> str:
            unprivileged()
            for _ in range(20):
                if os.fork() == 0:
                    namespaces.die_with_parent()
                    signal.pause()
            return call_contained(forks, view=View(), limits=Limits(processes=8))

        assert call_in_fork(work) == "7"


def test_the_host_survives_pids_that_are_used_up() -> None:
    """As root the kernel counts no processes, but the pid namespace has only so many pids."""
    if tuple(int(part) for part in os.uname().release.split(".")[:2]) < (6, 14):
        pytest.skip("pid namespaces have no limit of their own before Linux 6.14")

    def forks() -> str:
        for count in range(1000):
            try:
                # Not by a fork: to copy this process a few hundred times takes long.
                os.posix_spawn("/bin/sleep", ["sleep", "600"], {})
            except BlockingIOError:
                return "refused" if count < 350 else str(count)
        return "endless"

    before = Path("/proc/sys/kernel/pid_max").read_text()
    assert call_contained(forks, limits=Limits(processes=8)) == "refused"
    assert Path("/proc/sys/kernel/pid_max").read_text() == before


@pytest.mark.parametrize(("least", "taken"), [(301, 308), (512, 616), (4096, 4928)])
def test_pids_are_limited_where_there_are_many_processors(
    monkeypatch: pytest.MonkeyPatch, least: int, taken: int
) -> None:
    """Linux refuses a limit below eight for each processor: 512 where there are 64."""
    tried: list[int] = []

    def write(_: str, text: str) -> None:
        tried.append(int(text))
        if tried[-1] < least:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(limits, "write_file", write)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release="6.18.44-many"))
    limits.limit_pids(8)

    assert tried[-1] == taken


def test_sandboxes_nest_in_sandboxes() -> None:
    def inner() -> str:
        return call_contained(lambda: os.uname().nodename, limits=NONE)

    assert call_contained(inner, limits=NONE, seccomp="nestable") == "sandbox"
