"""What every sandbox must end, and how it must say so; with namespaces and without."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kabuild.sandbox import Limit, SandboxLimits, Spawner, probe
from tests.kabuild.sandbox.boxes import Box
from tests.kabuild.sandbox.survivors import pids_of

needs_namespaces = pytest.mark.skipif(probe() is not None, reason=f"no namespaces: {probe()}")


@pytest.fixture(scope="module")
def spawner() -> Iterator[Spawner]:
    with Spawner() as spawner:
        yield spawner


@pytest.fixture(params=[pytest.param(True, marks=needs_namespaces), False], ids=["box", "bare"])
def box(request: pytest.FixtureRequest, spawner: Spawner, tmp_path: Path) -> Box:
    return Box(spawner, tmp_path, hermetic=request.param)


@pytest.fixture
def contained(spawner: Spawner, tmp_path: Path) -> Box:
    return Box(spawner, tmp_path)


def test_the_wall_clock_ends_the_whole_tree(box: Box, tmp_path: Path) -> None:
    marker = f"{tmp_path.name}-{box.hermetic}"
    done = box.python(
        """
        import os, signal, subprocess, sys
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        waiting = [sys.executable, "-c", "import signal\\nwhile True: signal.pause()", sys.argv[1]]
        subprocess.Popen(waiting)
        subprocess.Popen(waiting, start_new_session=True, stdout=subprocess.DEVNULL)
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execv(waiting[0], waiting)
            os._exit(0)
        signal.pause()
        """,
        marker,
        limits=SandboxLimits(wall_seconds=0.6),
    )

    assert (done.limit, done.timed_out, done.ok) == (Limit.WALL, True, False)
    assert (done.signal, done.exit_code) == (signal.SIGKILL, None)
    assert pids_of(marker) == []


def test_what_outlives_the_command_is_killed(box: Box, tmp_path: Path) -> None:
    marker = f"{tmp_path.name}-{box.hermetic}"
    done = box.shell(
        f"(exec setsid sh -c 'trap \"\" HUP TERM; read x < fifo; : {marker}') & exit 7"
    )

    assert (done.exit_code, done.limit) == (7, None)
    assert pids_of(marker) == []


@pytest.mark.parametrize("name", [b"\xff\xfe", b") R 1 (", "a\u2028b\x0c".encode()])
def test_a_process_may_call_itself_anything(box: Box, name: bytes) -> None:
    done = box.python(
        f"""
        import ctypes, time
        ctypes.CDLL(None).prctl(15, {name!r}, 0, 0, 0)
        time.sleep(1)
        """,
        limits=SandboxLimits(wall_seconds=60, memory_bytes=1 << 30, cpu_seconds=30),
    )

    assert (done.exit_code, done.limit) == (0, None)


def test_cpu_time_of_the_tree_is_limited(box: Box) -> None:
    done = box.shell(
        "for i in 1 2; do (while :; do :; done) & done; wait",
        limits=SandboxLimits(wall_seconds=60, cpu_seconds=0.2),
    )

    assert done.limit is Limit.CPU
    assert done.cpu_seconds > 0.2


def test_cpu_time_of_one_process_ends_with_its_signal(box: Box) -> None:
    """The kernel's own limit is the backstop where sampling is slower than the command."""
    done = box.python("import os, signal\nos.kill(os.getpid(), signal.SIGXCPU)")

    assert (done.limit, done.signal) == (Limit.CPU, signal.SIGXCPU)


def test_memory_is_limited(box: Box) -> None:
    done = box.python(
        """
        import mmap
        kept = []
        while True:
            kept.append(mmap.mmap(-1, 1 << 22))
            kept[-1].write(b"x" * (1 << 22))
        """,
        limits=SandboxLimits(wall_seconds=60, memory_bytes=96 << 20),
    )

    assert done.limit is Limit.MEMORY
    assert done.max_rss_bytes > 96 << 20


def test_memory_of_many_small_processes_adds_up(box: Box) -> None:
    done = box.python(
        """
        import os, signal
        for _ in range(8):
            if os.fork() == 0:
                kept = b"x" * (24 << 20)
                signal.pause()
        signal.pause()
        """,
        limits=SandboxLimits(wall_seconds=60, memory_bytes=96 << 20),
    )

    assert done.limit is Limit.MEMORY


def test_one_huge_allocation_fails_in_the_program(box: Box) -> None:
    done = box.python(
        """
        try:
            bytearray(1 << 40)
        except MemoryError:
            print("refused")
        """,
        limits=SandboxLimits(wall_seconds=60, memory_bytes=256 << 20),
    )

    assert (done.stdout, done.limit) == (b"refused\n", None)


def test_libraries_do_not_count_as_memory(box: Box) -> None:
    """Mapped files are resident, but they are not what a program uses up."""
    (box.directory / "exec").mkdir()
    (box.directory / "exec" / "big").write_bytes(bytes(64 << 20))
    done = box.python(
        """
        import mmap
        with open("big", "rb") as file:
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        total = sum(mapped[at] for at in range(0, len(mapped), 4096))
        for _ in range(8_000_000):
            pass
        """,
        limits=SandboxLimits(wall_seconds=60, memory_bytes=48 << 20),
    )

    assert done.ok, done


def test_endless_forking_ends(box: Box) -> None:
    done = box.python(
        """
        import os, signal
        while True:
            try:
                if os.fork() == 0:
                    signal.pause()
            except OSError:
                os._exit(9)
        """,
        limits=SandboxLimits(wall_seconds=60, processes=40),
    )

    # The kernel refuses more processes to every user but root.
    assert done.limit is Limit.PROCESSES or done.exit_code == 9


@needs_namespaces
def test_a_fork_bomb_ends(contained: Box) -> None:
    done = contained.shell(
        "bomb() { bomb | bomb & }; bomb; while :; do :; done",
        limits=SandboxLimits(wall_seconds=1, processes=40),
    )

    # Out of pids, it may also go off before anyone has counted it; the first shell remains.
    assert done.limit in {Limit.PROCESSES, Limit.WALL}


def test_threads_count_as_processes(box: Box) -> None:
    done = box.python(
        """
        import threading
        hold = threading.Event()
        try:
            for _ in range(64):
                threading.Thread(target=hold.wait).start()
        except RuntimeError:
            import os
            os._exit(9)
        hold.wait()
        """,
        limits=SandboxLimits(wall_seconds=60, processes=32),
    )

    assert done.limit is Limit.PROCESSES or done.exit_code == 9


def test_as_many_processes_as_allowed_are_allowed(box: Box) -> None:
    done = box.shell(
        "for i in 1 2 3 4 5 6 7; do read x < out/fifo & done; sh -c 'exit 0' && echo made",
        limits=SandboxLimits(wall_seconds=60, processes=9),
    )

    assert (done.stdout, done.exit_code) == (b"made\n", 0)


def test_a_file_may_not_grow_for_ever(box: Box) -> None:
    done = box.shell(
        "exec cat /dev/zero > out/file", limits=SandboxLimits(wall_seconds=60, file_bytes=1 << 20)
    )

    assert (done.limit, done.signal) == (Limit.FILE, signal.SIGXFSZ)


@needs_namespaces
@pytest.mark.parametrize("place", ["/exec/out", "/tmp", "/dev/shm"])
def test_the_disk_fills_inside_only(contained: Box, place: str) -> None:
    done = contained.shell(
        f"cat /dev/zero > {place}/file; wc -c < {place}/file",
        limits=SandboxLimits(wall_seconds=60, scratch_bytes=1 << 20),
    )

    assert b"No space left" in done.stderr
    assert 0 < int(done.stdout) <= 1 << 20


@needs_namespaces
def test_the_disk_fills_with_empty_files_too(contained: Box) -> None:
    done = contained.python(
        """
        import errno, itertools
        for number in itertools.count():
            try:
                open(f"out/{number}", "w").close()
            except OSError as error:
                print(errno.errorcode[error.errno])
                break
        """,
        limits=SandboxLimits(wall_seconds=60, scratch_bytes=1 << 20),
    )

    assert done.stdout == b"ENOSPC\n"


@pytest.mark.parametrize("stream", ["1", "2"])
def test_endless_output_is_cut_and_ends_the_command(box: Box, stream: str) -> None:
    done = box.shell(f"yes >&{stream}", limits=SandboxLimits(wall_seconds=60, output_bytes=1000))
    kept = done.stdout if stream == "1" else done.stderr

    assert done.limit is Limit.OUTPUT
    assert kept.startswith(b"y\ny\n")
    assert b" bytes omitted ...]\n" in kept
    assert len(kept) < 1100


def test_long_output_keeps_both_ends(box: Box) -> None:
    done = box.shell(
        "echo first; seq 1000; echo last",
        limits=SandboxLimits(wall_seconds=60, output_bytes=1000),
    )

    assert done.ok
    assert done.stdout.startswith(b"first\n1\n2\n")
    assert done.stdout.endswith(b"\n1000\nlast\n")
    assert b"\n[... 2904 bytes omitted ...]\n" in done.stdout


def test_cpu_time_and_memory_are_reported(box: Box) -> None:
    done = box.python(
        """
        kept = b"x" * (64 << 20)
        for _ in range(3_000_000):
            pass
        """
    )

    assert done.ok
    assert done.max_rss_bytes >= 64 << 20
    assert 0 < done.cpu_seconds < 60
    assert 0 < done.wall_seconds < 60
