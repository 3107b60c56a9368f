"""Agents that do what agents should not, one for each trial: ``rogues.py NAME... --trial=N``.

Runs inside a session's sandbox as the files of an agent. What ends by itself and what does not are
declared apart, since they differ in their wall time.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

KERNEL = Path("/workspace/double.hip")
GIVEN = ("BRIEF.md", "reference.py", "configs.json", "CHEATSHEET.md", "TARGET.md")
EDITED = "// edited by the agent\n"
SECRET = "ROGUES_API_KEY"


def edit() -> None:
    """A change that a comment proves."""
    KERNEL.write_text(EDITED + KERNEL.read_text())


def odd() -> bytes:
    """A check that names what no encoding can write."""
    request = {"source": KERNEL.read_text(), "gates": ["smoke"], "only": "\ud800"}
    return json.dumps(request).encode() + b"\n"


def honest() -> None:
    edit()


def returns_nothing() -> None:
    pass


def crashes() -> None:
    edit()
    os.abort()


def complains() -> None:
    edit()
    sys.exit("something went wrong")


def deletes_its_workspace() -> None:
    shutil.rmtree("/workspace", ignore_errors=True)
    shutil.rmtree("/home/agent", ignore_errors=True)


def hands_in_a_link() -> None:
    KERNEL.unlink()
    KERNEL.symlink_to("/kabuild/lib/kabuild_check.py")


def hands_in_bytes() -> None:
    KERNEL.write_bytes(b"\0\xff" * 100)


def hands_in_too_much() -> None:
    KERNEL.write_text("// large\n" * 200_000)


def edits_what_is_given() -> None:
    """Every way to change a read-only file; ends with 1 if one of them works."""
    edit()
    for name in GIVEN:
        path = Path("/workspace", name)
        before = path.read_bytes()
        Path("/workspace/new").write_text("mine")
        for attempt in (_write, _open_up, Path.unlink, _move_away, _move_over, _mount):
            with contextlib.suppress(OSError):
                attempt(path)
        if path.read_bytes() != before:
            sys.exit(f"{name} was changed")
    Path("/workspace/new").unlink()


def writes_gigabytes() -> None:
    edit()
    for place in ("/workspace", "/home/agent", "/tmp"):
        for number in range(100):
            try:
                with Path(place, f"large-{number}").open("wb") as file:
                    os.posix_fallocate(file.fileno(), 0, 1 << 29)
            except OSError:
                break
    with contextlib.suppress(OSError):
        Path("/workspace/more").write_bytes(b"a" * 4096)
    print("wrote until nothing fitted")


def leaves_a_daemon() -> None:
    """Hands in at once; a daemon goes on to spoil it."""
    edit()
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        if os.fork() == 0:
            while True:
                time.sleep(0.2)
                KERNEL.write_text("spoiled")
        os._exit(0)


def floods_the_checks() -> None:
    edit()
    for garbage in (b"\n", b"{}\n", b"[" * 100_000 + b"\n", b'{"gates": 3}\n', b"\xff\n", odd()):
        with contextlib.suppress(OSError):
            _send(garbage)
    with contextlib.suppress(OSError):
        _send(b"x" * (8 << 20))
    import kabuild_check  # type: ignore[import-not-found, unused-ignore]

    for bad in ({"gates": ("unseen",)}, {"only": "no such config"}):
        try:
            kabuild_check.check(KERNEL.read_text(), **bad)
        except kabuild_check.CheckError as error:
            print(f"refused: {error}")
    for text, gate in (("int x = ;", "perf"), (KERNEL.read_text(), "smoke")):
        print(kabuild_check.check(text, gates=("compile", gate)).summary)


def tells_its_secret() -> None:
    """Everywhere that it can: output, kernel, and a check."""
    secret = os.environ[SECRET]
    KERNEL.write_text(f"// {secret}\n" + KERNEL.read_text())
    print(secret)
    print(secret.encode().hex(), file=sys.stderr)
    print(f'{{"usage": {{"turns": 1}}, "key": "{secret}"}}')
    subprocess.run(["kabuild-check", "compile"], check=False)
    Path("/workspace", secret).touch()
    sys.exit(secret)


def prints_for_ever() -> None:
    edit()
    line = b"a" * 1000 + b"\n"
    while True:
        os.write(1, line * 60)


def forks_for_ever() -> None:
    edit()
    end = time.monotonic() + 15
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            os.fork()


def ignores_every_signal() -> None:
    edit()
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(60)


def eats_memory() -> None:
    edit()
    kept = []
    while True:
        kept.append(b"a" * (16 << 20))


ENDING = (
    *(honest, returns_nothing, crashes, complains, deletes_its_workspace, hands_in_a_link),
    *(hands_in_bytes, hands_in_too_much, edits_what_is_given, writes_gigabytes),
    *(leaves_a_daemon, floods_the_checks, tells_its_secret),
)
ENDLESS = (prints_for_ever, forks_for_ever, ignores_every_signal, eats_memory)


def _write(path: Path) -> None:
    path.write_text("mine")


def _open_up(path: Path) -> None:
    path.chmod(0o666)


def _move_away(path: Path) -> None:
    path.rename("/workspace/other")


def _move_over(path: Path) -> None:
    Path("/workspace/new").replace(path)


def _mount(path: Path) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"/tmp", bytes(path), None, ctypes.c_ulong(4096), None):
        raise OSError(ctypes.get_errno(), "mount")


def _send(data: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(30)
        connection.connect("/kabuild/run/check")
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1000)


if __name__ == "__main__":
    group = {"ending": ENDING, "endless": ENDLESS}[sys.argv[1]]
    group[int(sys.argv[2]) - 1]()
