"""Zygotes that die, are crowded out or never start; and a kabuild that is killed."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest

from kabuild.base.errors import Reason, SandboxError
from kabuild.sandbox import Spawner, UnsavedOutputsError, probe
from tests.kabuild.sandbox.boxes import ENV, Box

needs_namespaces = pytest.mark.skipif(probe() is not None, reason=f"no namespaces: {probe()}")
ROOT = Path(__file__).parents[3]


@pytest.fixture
def spawner() -> Iterator[Spawner]:
    with Spawner() as spawner:
        yield spawner


@pytest.fixture
def box(spawner: Spawner, tmp_path: Path) -> Box:
    box = Box(spawner, tmp_path)
    box.inputs.mkdir()
    os.mkfifo(box.inputs / "fifo")
    os.mkfifo(box.inputs / "other")
    return box


def started(box: Box) -> None:
    """Return when the command has written to its fifo."""
    assert (box.inputs / "fifo").read_text() == "started\n"


def zygote_pids(spawner: Spawner) -> list[int]:
    processes = [zygote._process for zygote in spawner._zygotes.values()]
    return [process.pid for process in processes if process is not None]


def test_nothing_starts_before_it_is_needed(spawner: Spawner) -> None:
    assert zygote_pids(spawner) == []


@needs_namespaces
def test_one_zygote_serves_all_programs(box: Box, spawner: Spawner) -> None:
    for _ in range(3):
        assert box.shell("exit 0").ok

    assert len(zygote_pids(spawner)) == 1


@needs_namespaces
def test_a_zygote_that_dies_is_replaced_and_the_command_repeated(
    box: Box, spawner: Spawner
) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(box.shell, "echo started > fifo; read x < other; echo $x")
        started(box)
        os.kill(zygote_pids(spawner)[0], signal.SIGKILL)
        started(box)
        (box.inputs / "other").write_text("again\n")

        assert running.result().stdout == b"again\n"


@needs_namespaces
def test_a_zygote_that_dies_twice_is_a_failure_of_the_machine(box: Box, spawner: Spawner) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(box.shell, "echo started > fifo; read x < other")
        for _ in range(2):
            started(box)
            os.kill(zygote_pids(spawner)[0], signal.SIGKILL)
        with pytest.raises(SandboxError, match=r"the zygote process .* died") as caught:
            running.result()

    assert caught.value.reason is Reason.SANDBOX_FAILED
    assert box.shell("exit 0").ok  # the spawner recovers


def test_a_zygote_that_never_starts_is_named_with_its_stderr(box: Box, tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\necho this python is broken >&2\nexit 1\n")
    python.chmod(0o755)

    with pytest.raises(SandboxError, match=r"decimal preloaded.* died: this python is broken"):
        box.run(str(python), "script.py", preload=("decimal",))


@needs_namespaces
def test_a_sandbox_that_dies_alone_is_a_failure_of_the_machine(box: Box, spawner: Spawner) -> None:
    """Nobody restarts it: whatever killed pid 1 of the sandbox would do so again."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(box.shell, "echo started > fifo; read x < other")
        started(box)
        zygote = zygote_pids(spawner)[0]
        anchor = Path(f"/proc/{zygote}/task/{zygote}/children").read_text().split()[0]
        os.kill(int(anchor), signal.SIGKILL)
        with pytest.raises(SandboxError, match="a sandbox ended without a report"):
            running.result()


@needs_namespaces
def test_a_mount_that_does_not_exist_is_a_failure_of_the_machine(box: Box) -> None:
    with pytest.raises(SandboxError, match=r"cannot build the sandbox: .*'/no/such/toolchain'"):
        box.shell("exit 0", mounts=("/no/such/toolchain",))

    assert box.shell("exit 0").ok


@needs_namespaces
def test_in_place_of_a_link_to_a_tree_is_the_tree(box: Box, tmp_path: Path) -> None:
    """A sandbox within this one shows what is at that path, and nothing of where links lead."""
    (tmp_path / "tools/cc-13/bin").mkdir(parents=True)
    (tmp_path / "tools/cc-13/bin/cc").touch()
    link = tmp_path / "cc"
    link.symlink_to("tools/cc-13")
    assert box.shell(f"test -f {link}/bin/cc -a ! -L {link}", trees=(str(link),)).ok
    assert not box.shell(f"test -f {link}/bin/cc", mounts=(str(link),)).ok


@needs_namespaces
def test_outputs_that_cannot_be_saved_are_a_failure_of_the_machine(box: Box) -> None:
    box.shell("exit 0")
    (box.collected / "out").write_text("in the way")
    with pytest.raises(UnsavedOutputsError, match="Not a directory"):
        box.shell("echo x > out/x", outputs=("out/x",))


def test_crowded_zygotes_make_room(spawner: Spawner, tmp_path: Path) -> None:
    box = Box(spawner, tmp_path, hermetic=False)
    box.inputs.mkdir()
    (box.inputs / "script.py").write_text("import os; print(os.environ['N'])\n")
    for number in range(6):
        env = {**ENV, "N": str(number)}
        done = box.run(sys.executable, "script.py", preload=("decimal",), env=env)
        assert done.stdout == b"%d\n" % number

    kept = [dict(key[2])["N"] for key in spawner._zygotes if key[1]]
    assert kept == ["2", "3", "4", "5"]


def test_a_command_may_have_variables_of_its_own_in_a_process_that_others_share(
    spawner: Spawner, tmp_path: Path
) -> None:
    box = Box(spawner, tmp_path, hermetic=False)
    box.inputs.mkdir()
    (box.inputs / "script.py").write_text("import os; print(os.environ['N'])\n")
    for number in range(2):
        own = {"N": str(number)}
        done = box.run(sys.executable, "script.py", preload=("decimal",), own_env=own)
        assert done.stdout == b"%d\n" % number

    assert len([key for key in spawner._zygotes if key[1]]) == 1


HOLD_THE_FIFO = """
import os, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
fifo = os.open("fifo", os.O_WRONLY)
code = "import os, signal, sys; os.write(int(sys.argv[1]), b'.'); signal.pause()"
wait = [sys.executable, "-c", code]
subprocess.Popen([*wait, str(fifo)], pass_fds=[fifo])
subprocess.Popen([*wait, str(fifo)], pass_fds=[fifo], start_new_session=True)
os.write(fifo, b".")
signal.pause()
"""


class Lifeline:
    """The reading end of a fifo that every process of ``HOLD_THE_FIFO`` keeps open."""

    def __init__(self, box: Box) -> None:
        box.inputs.mkdir()
        path = box.inputs / "fifo"
        os.mkfifo(path)
        (box.inputs / "script.py").write_text(HOLD_THE_FIFO)
        self.fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        self.writer = os.open(path, os.O_WRONLY)  # until the script has opened it

    def wait_for_three(self) -> None:
        seen = b""
        while len(seen) < 3:
            assert select.select([self.fd], [], [], 60)[0], "the script did not start"
            seen += os.read(self.fd, 3)
        os.close(self.writer)

    def is_cut(self) -> bool:
        """Whether all three end; waits for it."""
        ended = bool(select.select([self.fd], [], [], 60)[0]) and os.read(self.fd, 1) == b""
        os.close(self.fd)
        return ended


@pytest.mark.parametrize("hermetic", [pytest.param(True, marks=needs_namespaces), False])
def test_closing_ends_what_runs(tmp_path: Path, *, hermetic: bool) -> None:
    spawner = Spawner()
    box = Box(spawner, tmp_path, hermetic=hermetic)
    lifeline = Lifeline(box)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(box.run, sys.executable, "script.py")
        lifeline.wait_for_three()
        spawner.close()
        with contextlib.suppress(SandboxError):  # its zygote may be gone first
            assert running.result().cancelled

    assert lifeline.is_cut()
    with pytest.raises(SandboxError, match="the spawner was closed"):
        box.shell("exit 0")


@needs_namespaces
def test_a_stop_during_the_set_up_is_no_failure(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kabuild.sandbox.run._POLL_SECONDS", 0)
    cancel = Event()
    cancel.set()

    assert all(box.shell("sleep 60", cancel=cancel).cancelled for _ in range(20))


@pytest.mark.parametrize("hermetic", [pytest.param(True, marks=needs_namespaces), False])
@pytest.mark.parametrize("preload", [(), ("decimal",)])
def test_nothing_survives_a_kabuild_that_is_killed(
    tmp_path: Path, preload: tuple[str, ...], *, hermetic: bool
) -> None:
    lifeline = Lifeline(Box(Spawner(), tmp_path))
    driver = (
        "import sys; from pathlib import Path\n"
        "from kabuild.sandbox import Spawner\n"
        "from tests.kabuild.sandbox.boxes import Box\n"
        f"box = Box(Spawner(), Path({str(tmp_path)!r}), hermetic={hermetic})\n"
        f"box.run(sys.executable, 'script.py', preload={preload!r})\n"
    )
    kabuild = subprocess.Popen([sys.executable, "-c", driver], cwd=ROOT)
    lifeline.wait_for_three()
    kabuild.kill()
    kabuild.wait()

    assert lifeline.is_cut()
