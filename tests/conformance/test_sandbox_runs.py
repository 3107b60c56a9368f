"""How commands start, end and hand over what they made; with namespaces and without."""

from __future__ import annotations

import os
import signal
import stat
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from kabuild.sandbox import Output, OutputKind, Spawner, probe
from tests.kabuild.sandbox.boxes import PYTHON_TREES, Box
from tests.kabuild.sandbox.survivors import pids_of

needs_namespaces = pytest.mark.skipif(probe() is not None, reason=f"no namespaces: {probe()}")
SANDBOX_FILES = ("limits.py", "namespaces.py", "rootfs.py", "seccomp.py")


class AfterPolls:
    """Asks for cancellation once it was asked ``count`` times."""

    def __init__(self, count: int) -> None:
        self.count = count

    def is_set(self) -> bool:
        self.count -= 1
        return self.count < 0


@pytest.fixture(scope="module")
def spawner() -> Iterator[Spawner]:
    with Spawner() as spawner:
        yield spawner


@pytest.fixture(params=[pytest.param(True, marks=needs_namespaces), False], ids=["box", "bare"])
def box(request: pytest.FixtureRequest, spawner: Spawner, tmp_path: Path) -> Box:
    return Box(spawner, tmp_path, hermetic=request.param)


def test_the_result_says_whether_it_was_hermetic(box: Box) -> None:
    assert box.shell("exit 0").hermetic is box.hermetic


@pytest.mark.parametrize("code", [0, 1, 125, 255])
def test_exit_codes_are_reported(box: Box, code: int) -> None:
    done = box.shell(f"exit {code}")

    assert (done.exit_code, done.signal, done.limit) == (code, None, None)
    assert done.ok is (code == 0)


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGABRT", "SIGTERM", "SIGKILL", "SIGPIPE"])
def test_signals_are_reported(box: Box, name: str) -> None:
    done = box.shell(f"kill -{name[3:]} $$")

    assert (done.exit_code, done.signal) == (None, getattr(signal, name))
    assert done.limit is None


def test_a_crash_in_native_code_is_its_signal(box: Box) -> None:
    done = box.python("import ctypes\nctypes.string_at(1)")

    assert done.signal == signal.SIGSEGV


def test_a_missing_program_is_127_with_a_reason(box: Box) -> None:
    done = box.run("/usr/bin/no-such-program")

    assert done.exit_code == 127
    assert done.stderr == b"cannot start /usr/bin/no-such-program: No such file or directory\n"


def test_a_program_is_found_in_its_path(box: Box) -> None:
    assert box.run("true", env={"PATH": "/nowhere:/usr/bin:/bin"}).exit_code == 0
    assert box.run("true", env={"PATH": "/nowhere"}).exit_code == 127


def test_stdin_is_empty(box: Box) -> None:
    done = box.shell("cat; echo ended")

    assert done.stdout == b"ended\n"


def test_stdout_and_stderr_are_separate_bytes(box: Box) -> None:
    done = box.shell(r"printf '\377\000'; printf '\376' >&2")

    assert (done.stdout, done.stderr) == (b"\xff\x00", b"\xfe")


def test_the_working_directory_holds_the_inputs(box: Box) -> None:
    (box.inputs / "deep").mkdir(parents=True)
    (box.inputs / "deep" / "file").write_text("content")
    done = box.shell("cat deep/file; ls")

    assert done.stdout == b"contentdeep\nout\n"


def test_outputs_are_collected(box: Box) -> None:
    done = box.shell(
        """
        echo text > out/file
        echo tool > out/tool; chmod 700 out/tool
        mkdir -p out/tree/inner/empty; echo x > out/tree/inner/x; echo not-declared > out/other
        """,
        outputs=("out/file", "out/tool", "out/tree", "out/missing", "out/no/parent"),
    )

    assert done.outputs == (
        Output("out/file", OutputKind.FILE),
        Output("out/tool", OutputKind.FILE),
        Output("out/tree", OutputKind.DIRECTORY),
        Output("out/missing", OutputKind.MISSING),
        Output("out/no/parent", OutputKind.MISSING),
    )
    assert (box.collected / "out/file").read_text() == "text\n"
    assert (box.collected / "out/tree/inner/x").read_text() == "x\n"
    assert (box.collected / "out/tree/inner/empty").is_dir()
    assert not (box.collected / "out/other").exists()
    modes = [stat.S_IMODE((box.collected / "out" / n).stat().st_mode) for n in ("file", "tool")]
    assert modes == [0o644, 0o755]


def test_parents_of_outputs_exist_before_the_command(box: Box) -> None:
    done = box.shell("echo x > out/a/b/c", outputs=("out/a/b/c",))

    assert [output.kind for output in done.outputs] == [OutputKind.FILE]


def test_outputs_of_a_failure_are_collected(box: Box) -> None:
    done = box.shell("echo x > out/log; exit 3", outputs=("out/log",))

    assert done.exit_code == 3
    assert (box.collected / "out/log").read_text() == "x\n"


@pytest.mark.parametrize(
    ("make", "what"),
    [
        ("ln -s /etc/passwd out/it", "it is a symbolic link"),
        ("mkfifo out/it", "it is a named pipe"),
        ("mkdir out/it; ln -s .. out/it/up", "up is a symbolic link"),
        ("mkdir out/it; mkfifo out/it/pipe", "pipe is a named pipe"),
        ("python3 -c 'import socket; socket.socket(1).bind(\"out/it\")'", "it is a socket"),
    ],
)
def test_what_is_no_file_is_refused(box: Box, make: str, what: str) -> None:
    tools = ":".join((str(Path(sys.executable).parent), "/usr/bin", "/bin"))
    done = box.shell(make, outputs=("out/it",), env={"PATH": tools})

    assert done.exit_code == 0, done.stderr
    assert done.outputs == (Output("out/it", OutputKind.REFUSED, what),)


def test_a_linked_parent_is_refused(box: Box) -> None:
    """``out/dir`` exists before the command, which may replace it by a link to anywhere."""
    done = box.shell("rmdir out/dir; ln -s /usr/bin out/dir", outputs=("out/dir/env",))

    assert done.outputs == (Output("out/dir/env", OutputKind.REFUSED, "dir is not a directory"),)
    assert not (box.collected / "out/dir/env").exists()


@needs_namespaces
def test_unreadable_outputs_are_read_all_the_same(spawner: Spawner, tmp_path: Path) -> None:
    box = Box(spawner, tmp_path)
    done = box.shell(
        "mkdir out/d; echo x > out/d/f; chmod 0 out/d/f out/d out", outputs=("out/d/f",)
    )

    assert done.outputs == (Output("out/d/f", OutputKind.FILE),)
    assert (box.collected / "out/d/f").read_text() == "x\n"


def test_cancellation_kills_the_tree(box: Box, tmp_path: Path) -> None:
    marker = f"{tmp_path.name}-{box.hermetic}"
    (box.inputs).mkdir()
    os.mkfifo(box.inputs / "fifo")
    done = box.shell(f"trap '' TERM; read x < fifo; : {marker}", cancel=AfterPolls(2))

    assert (done.cancelled, done.ok, done.limit) == (True, False, None)
    assert pids_of(marker) == []


def test_a_command_that_ended_was_not_cancelled(box: Box) -> None:
    done = box.shell("exit 0", cancel=AfterPolls(1000))

    assert (done.cancelled, done.ok) == (False, True)


def test_eight_at_once(box: Box, tmp_path: Path) -> None:
    def one(number: int) -> tuple[bytes, str]:
        own = replace(box, directory=tmp_path / str(number))
        own.directory.mkdir()
        done = own.shell(
            f"for i in 1 2 3; do echo {number} >> out/n; done; touch /tmp/box-{number}; "
            "ls /tmp | grep box-; cat out/n",
            outputs=("out/n",),
        )
        return done.stdout, (own.collected / "out/n").read_text()

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(one, range(16)))

    expected = [f"{number}\n" * 3 for number in range(16)]
    assert [text for _, text in results] == expected
    if box.hermetic:
        alone = [f"box-{number}\n{text}" for number, text in enumerate(expected)]
        assert [stdout.decode() for stdout, _ in results] == alone


@needs_namespaces
def test_a_sandbox_within_a_sandbox(spawner: Spawner, tmp_path: Path) -> None:
    """What a judge does: the candidate gets a box inside the judge's box."""
    box = Box(spawner, tmp_path)
    box.inputs.mkdir()
    (box.inputs / "secret").write_text("of the judge")
    for name in SANDBOX_FILES:
        source = Path(__file__).parents[2] / "kabuild" / "sandbox" / name
        (box.inputs / name).write_text(source.read_text())
    script = """
        import ctypes, os, sys
        from namespaces import Bind, Limits, View, fork_contained, system_binds

        def candidate():
            seen = [os.path.exists("/exec/secret"), os.getuid(), len(os.listdir("/tmp"))]
            libc = ctypes.CDLL(None, use_errno=True)
            seen += [libc.unshare(0x10000000), os.listdir("/proc").count("1")]
            os.write(1, repr(seen).encode())
            os.kill(os.getpid(), 11)

        open("/tmp/of-the-judge", "w").close()
        view = View(binds=system_binds(), hostname="inner")
        pid = fork_contained(view, Limits(processes=4), candidate, keep_fds=(1, 2))
        status = os.waitpid(pid, 0)[1]
        print(os.WTERMSIG(status), os.uname().nodename)
    """
    nested = box.python(script, nestable=True)
    refused = box.python(script)

    assert nested.stdout == b"[False, 1000, 0, -1, 1]11 kabuild\n", nested.stderr
    assert refused.exit_code == 1
    assert b"SandboxError: cannot enter namespaces: unshare: Operation not permitted" in (
        refused.stderr
    )


@needs_namespaces
def test_mounts_appear_at_their_own_paths(spawner: Spawner, tmp_path: Path) -> None:
    """Also below /tmp, which is otherwise private."""
    tree = tmp_path / "toolchain"
    (tree / "bin").mkdir(parents=True)
    (tree / "bin" / "tool").write_text("#!/bin/sh\necho tool of $0\n")
    (tree / "bin" / "tool").chmod(0o755)
    box = Box(spawner, tmp_path)
    done = box.shell(
        f"{tree}/bin/tool; echo x > {tree}/new; ls {tmp_path}",
        mounts=(*PYTHON_TREES, str(tree)),
    )

    assert done.stdout.decode() == f"tool of {tree}/bin/tool\ntoolchain\n"
    assert b"Read-only file system" in done.stderr
