"""The sandbox itself: how it starts, ends, nests and fails, as root and as an ordinary user."""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kabuild.sandbox import namespaces, probe
from kabuild.sandbox.namespaces import (
    Bind,
    Limits,
    SandboxError,
    View,
    fork_contained,
    system_binds,
)
from tests.kabuild.sandbox.boxes import call_contained, call_in_fork, view, wait, writable_settings
from tests.kabuild.sandbox.survivors import all_end

pytestmark = pytest.mark.skipif(probe() is not None, reason=f"no namespaces: {probe()}")
NONE = Limits()


@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_exit_code_is_the_childs(code: int) -> None:
    assert wait(fork_contained(view(), NONE, lambda: code)) == code


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_the_signal_is_the_childs(number: signal.Signals) -> None:
    pid = fork_contained(view(), NONE, lambda: os.kill(os.getpid(), number))

    assert wait(pid) == -number


def test_an_exception_is_exit_code_1_with_a_trace() -> None:
    read, write = os.pipe()

    def child() -> int:
        sys.stderr = os.fdopen(write, "w")
        raise RuntimeError("of the child")

    pid = fork_contained(view(), NONE, child, keep_fds=(write,))
    os.close(write)
    with os.fdopen(read) as pipe:
        assert "RuntimeError: of the child" in pipe.read()
    assert wait(pid) == 1


def test_an_exit_request_is_honoured() -> None:
    assert wait(fork_contained(view(), NONE, lambda: sys.exit(5))) == 5


def test_the_child_is_nobody_in_particular() -> None:
    def look() -> str:
        return repr((os.getuid(), os.getgid(), str(Path.cwd()), os.getsid(0) > 1))

    assert call_contained(look, limits=NONE) == repr((1000, 1000, "/tmp", True))


def test_only_named_descriptors_stay_open() -> None:
    read, write = os.pipe()
    os.set_inheritable(read, True)

    def look() -> str:
        open_fds = {int(entry.name) for entry in Path("/proc/self/fd").iterdir()}
        null = [str(Path(f"/proc/self/fd/{fd}").readlink()) for fd in (0, 1)]
        return repr([null, open_fds & {read, write}])

    try:
        assert call_contained(look, limits=NONE) == repr([["/dev/null"] * 2, set()])
    finally:
        os.close(read)
        os.close(write)


def test_killing_the_anchor_ends_the_tree() -> None:
    alive_read, alive_write = os.pipe()

    def child() -> int:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            os.setsid()
        os.write(alive_write, b".")
        while True:
            signal.pause()

    pid = fork_contained(view(), NONE, child, keep_fds=(alive_write,))
    os.close(alive_write)
    assert os.read(alive_read, 1) + os.read(alive_read, 1) == b".."
    os.kill(pid, signal.SIGKILL)
    assert wait(pid) == -signal.SIGKILL
    assert os.read(alive_read, 1) == b""  # both holders of the pipe are gone
    os.close(alive_read)


def test_the_end_of_the_caller_ends_the_tree() -> None:
    alive_read, alive_write = os.pipe()
    caller = os.fork()
    if caller == 0:
        fork_contained(view(), NONE, signal.pause, keep_fds=(alive_write,))
        os.kill(os.getpid(), signal.SIGKILL)
    os.close(alive_write)
    wait(caller)

    assert select.select([alive_read], [], [], 30)[0]
    assert os.read(alive_read, 1) == b""
    os.close(alive_read)


def test_the_end_of_the_child_ends_its_children() -> None:
    alive_read, alive_write = os.pipe()

    def child() -> int:
        if os.fork() == 0:
            os.setsid()
            signal.pause()
        return 0

    pid = fork_contained(view(), NONE, child, keep_fds=(alive_write,))
    os.close(alive_write)
    assert wait(pid) == 0
    assert os.read(alive_read, 1) == b""
    os.close(alive_read)


def test_orphans_are_reaped() -> None:
    def look() -> str:
        if os.fork() == 0:
            if os.fork() == 0:
                os._exit(0)
            os._exit(0)
        os.wait()
        while {entry.name for entry in Path("/proc").glob("[0-9]*")} != {"1", "2"}:
            os.sched_yield()
        return "reaped"

    assert call_contained(look, limits=NONE) == "reaped"


def test_pid_1_cannot_be_touched_from_inside() -> None:
    def look() -> str:
        seen = []
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGINT, signal.SIGTERM):
            os.kill(1, number)
        for name in ("environ", "mem", "stack"):
            with contextlib.suppress(PermissionError):
                Path("/proc/1", name).read_bytes()
                seen.append(name)
        for name in ("root", "cwd", "exe", "fd/0", "fd/3"):
            with contextlib.suppress(PermissionError, FileNotFoundError):
                seen.append(str(Path("/proc/1", name).readlink()))
        with contextlib.suppress(PermissionError):
            resource.prlimit(1, resource.RLIMIT_CPU, (0, 0))
            seen.append("limits")
        return repr(seen)

    assert call_contained(look, limits=NONE) == "[]"


def test_handlers_of_the_caller_do_not_expose_pid_1() -> None:
    """A handled signal reaches even pid 1, and would run the caller's code there."""

    def child() -> int:
        os.kill(1, signal.SIGUSR1)
        return 4

    before = signal.signal(signal.SIGUSR1, lambda *_: os._exit(99))
    try:
        pid = fork_contained(view(), NONE, child)
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert wait(pid) == 4


def test_the_supervisor_runs_beside_the_worker_with_its_own_descriptors() -> None:
    read, write = os.pipe()

    def supervise(worker: int) -> int:
        seen = [os.getpid(), worker, os.waitpid(worker, 0)[1] >> 8, Path("/tmp/made").exists()]
        os.write(write, repr(seen).encode())
        return 42

    def child() -> int:
        Path("/tmp/made").touch()
        try:
            os.fstat(write)
        except OSError:
            return 7
        return 8

    pid = fork_contained(view(), NONE, child, supervisor=supervise, supervisor_fds=(write,))
    os.close(write)
    with os.fdopen(read) as pipe:
        seen = pipe.read()

    assert (seen, wait(pid)) == ("[1, 2, 7, True]", 42)


def test_a_missing_source_fails_with_its_name() -> None:
    with pytest.raises(SandboxError, match=r"cannot build the sandbox: .*'/no/such/source'"):
        fork_contained(View(binds=(Bind("/no/such/source", "/x"),)), NONE, lambda: 0)


def test_a_missing_working_directory_fails_with_its_name() -> None:
    with pytest.raises(SandboxError, match=r"cannot confine the worker: .*'/no/such/place'"):
        fork_contained(view(cwd="/no/such/place"), NONE, lambda: 0)


def test_a_mount_point_inside_a_read_only_tree_fails(tmp_path: Path) -> None:
    """It would otherwise be made in the host's own tree."""
    binds = (Bind(str(tmp_path), "/tree"),)
    with pytest.raises(SandboxError, match="Read-only file system: '/tree/inner'"):
        fork_contained(View(binds=binds, tmpfs=(("/tree/inner", 4096),)), NONE, lambda: 0)
    assert list(tmp_path.iterdir()) == []


def test_a_failed_set_up_leaves_no_child() -> None:
    def work() -> str:
        with contextlib.suppress(SandboxError):
            fork_contained(view(cwd="/no/such/place"), NONE, lambda: 0)
        try:
            return str(os.waitpid(-1, os.WNOHANG))
        except ChildProcessError:
            return "no child"

    assert call_in_fork(work) == "no child"


def test_a_refusal_of_the_machine_is_explained() -> None:
    """Inside a strict sandbox, new namespaces are refused: a machine that says no."""
    answer = call_contained(lambda: str(probe()), limits=NONE)

    assert answer == "cannot enter namespaces: unshare: Operation not permitted"


def test_a_setting_that_explains_the_refusal_is_named(tmp_path: Path) -> None:
    setting = tmp_path / "max_user_namespaces"
    setting.write_text("0\n")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import namespaces; "
        "namespaces.Path = lambda path: __import__('pathlib').Path(path.replace("
        f"'/proc/sys/user', {str(tmp_path)!r})); print(namespaces._hint())"
    )
    tools = str(Path(namespaces.__file__).parent)
    seen = subprocess.check_output([sys.executable, "-c", script, tools], text=True)

    assert seen == "; /proc/sys/user/max_user_namespaces is 0\n"


def test_it_works_as_a_top_level_module_of_a_tools_directory() -> None:
    tools = str(Path(namespaces.__file__).parent)
    script = "import sys; sys.path.insert(0, sys.argv[1]); import namespaces as n; print(n.probe())"
    command = [sys.executable, "-I", "-S", "-c", script, tools]

    assert subprocess.check_output(command, text=True) == "None\n"


def test_settings_of_the_host_are_read_only() -> None:
    """The host's root would own them in there, without any capability."""

    assert call_contained(writable_settings, limits=NONE) == "[True, []]"


def test_a_process_may_write_to_its_own_proc_directory() -> None:
    """The driver of NVIDIA GPUs does, and fails if it cannot."""

    def look() -> str:
        Path("/proc/self/comm").write_text("renamed")
        Path(f"/proc/self/task/{os.getpid()}/comm").write_text("again")
        return Path("/proc/self/comm").read_text()

    assert call_contained(look, limits=NONE) == "again\n"


def test_all_pids_end_when_the_sandbox_does() -> None:
    read, write = os.pipe()

    def child() -> int:
        for _ in range(5):
            if os.fork() == 0:
                os.write(write, b".")
                signal.pause()
        os.write(write, b".")
        signal.pause()
        return 0

    pid = fork_contained(view(), NONE, child, keep_fds=(write,))
    os.close(write)
    assert len(b"".join(os.read(read, 1) for _ in range(6))) == 6
    inside = _descendants(pid)
    os.kill(pid, signal.SIGKILL)
    wait(pid)

    assert len(inside) == 7
    assert all_end(inside)
    os.close(read)


def _descendants(pid: int) -> list[int]:
    found: list[int] = []
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        found += [int(child), *_descendants(int(child))]
    return found


def test_what_lies_below_a_link_within_a_tree_is_placed_where_it_leads(tmp_path: Path) -> None:
    """A package of Python that is installed elsewhere, and linked into site-packages."""
    packages, elsewhere = tmp_path / "packages", tmp_path / "elsewhere"
    packages.mkdir()
    (elsewhere / "bin").mkdir(parents=True)
    (elsewhere / "bin" / "tool").write_text("a tool")
    (packages / "linked").symlink_to(elsewhere)
    tool = packages / "linked/bin/tool"

    for inner in (tool, tool.parent):
        binds = (*system_binds(), *(Bind(str(path), str(path)) for path in (packages, inner)))
        view = View(binds=binds, tmpfs=())
        assert call_contained(tool.read_text, view=view, limits=NONE) == "a tool"


def test_a_link_within_a_tree_makes_nothing_on_the_host(tmp_path: Path) -> None:
    packages, outside = tmp_path / "packages", tmp_path / "outside"
    packages.mkdir()
    (packages / "linked").symlink_to(f"/.host{outside}/new")
    (tmp_path / "tool").write_text("a tool")
    tool = Bind(str(tmp_path / "tool"), str(packages / "linked/bin/tool"))
    view = View(binds=(*system_binds(), Bind(str(packages), str(packages)), tool), tmpfs=())

    with pytest.raises(SandboxError, match="linked"):
        call_contained(lambda: "", view=view, limits=NONE)
    assert not outside.exists()


def test_what_lies_below_a_link_is_placed_where_the_link_leads(tmp_path: Path) -> None:
    """Also where that is deeper than the link, and so placed later."""
    home, link, other = tmp_path / "deep/er/home", tmp_path / "link", tmp_path / "other"
    (home / "inner").mkdir(parents=True)
    (home / "file").write_text("file")
    other.mkdir()
    (other / "name").write_text("other")
    link.symlink_to(home)
    binds = (
        *system_binds(),
        *(Bind(str(path), str(path)) for path in (link, home)),
        Bind(str(other), f"{link}/inner"),
    )

    def look() -> str:
        return (link / "file").read_text() + (home / "inner" / "name").read_text()

    seen = call_contained(look, view=View(binds=binds, tmpfs=()), limits=NONE)

    assert seen == "fileother"
