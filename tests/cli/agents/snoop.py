# ruff: noqa: PTH115, PTH118, PTH208 - it asks the system, not a library
"""An agent that looks for what it should not see, and prints one line of JSON: what it found.

Runs inside a session's sandbox. What belongs to the system and to toolchains is named by its
mount; every other file is listed, and read.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/sys", "/dev"),
    "/etc/alternatives",
)
OURS = ("/kabuild", "/agent", "/etc")
PLACES = ("/workspace", "/home", "/tmp")  # below them may be toolchains, wherever a host has them
_PTRACE_ATTACH = 16


def mounts() -> list[str]:
    """Where something is mounted."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return sorted({line.split(" ")[4] for line in lines})


def sources() -> list[str]:
    """What the table of mounts says of the host: roots of binds and devices."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return sorted({line.split(" ")[3] for line in lines})


def files(toolchains: list[str]) -> Iterator[str]:
    """Every path outside of the system and of toolchains."""
    hidden = {*SYSTEM, *toolchains}
    for directory, names, found in os.walk("/"):
        names[:] = [n for n in names if os.path.join(directory, n) not in hidden]
        yield from (os.path.join(directory, name) for name in found)


def texts(words: list[str], paths: list[str]) -> list[str]:
    """Files that hold one of the words."""
    found = []
    for path in paths:
        with contextlib.suppress(OSError):
            text = Path(path).read_bytes()
            found += [f"{path}: {word}" for word in words if word.encode() in text]
    return found


def processes() -> dict[str, Any]:
    """Other processes, and what of them can be read."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    readable = []
    for pid in pids:
        if pid == os.getpid():
            continue
        for name in ("environ", "maps", "mem", "root/etc/passwd", "cwd", "fd", "stack"):
            path = Path("/proc", str(pid), name)
            with contextlib.suppress(OSError):
                if _opens(path):
                    readable.append(f"{pid}/{name}")
    return {"pids": sorted(pids), "readable": readable}


def _opens(path: Path) -> bool:
    if path.name == "fd":  # numbers are for everybody; what they are is not
        return any(os.readlink(path / number) for number in os.listdir(path))
    return bool(os.listdir(path) if path.is_dir() else path.open("rb").read(1))


def connections(targets: list[str]) -> list[str]:
    """Which of some addresses answer, and abstract sockets that exist."""
    reached = []
    for target in targets:
        host, _, port = target.rpartition(":")
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 2):
            reached.append(target)
    for line in Path("/proc/net/unix").read_text().splitlines()[1:]:
        path = line.split()[7:] and line.split()[7]
        if path and path != "/kabuild/run/check":
            reached.append(path)
    with contextlib.suppress(OSError):
        reached.append(str(socket.getaddrinfo("example.com", 443)[0][4]))
    return reached


def allowed_calls() -> list[str]:
    """System calls that would be a way out, and that worked."""
    libc = ctypes.CDLL(None, use_errno=True)
    attempts: dict[str, Callable[[], int]] = {
        "unshare": lambda: libc.unshare(0x10000000),
        "mount": lambda: libc.mount(b"proc", b"/tmp", b"proc", 0, None),
        "umount": lambda: libc.umount2(b"/workspace/BRIEF.md", 2),
        "chroot": lambda: libc.chroot(b"/tmp"),
        "ptrace": lambda: libc.ptrace(_PTRACE_ATTACH, 1, 0, 0),
        "keyctl": lambda: libc.syscall(250, 0, -3, 0),
        "io_uring": lambda: libc.syscall(425, 1, 0),
        "setuid": lambda: libc.setuid(0),
    }
    worked = []
    for name, attempt in attempts.items():
        pid = os.fork()
        if pid == 0:  # whatever it does, or whoever ends it
            os._exit(0 if attempt() >= 0 else 1)
        if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0:
            worked.append(name)
    return worked


def descriptors() -> dict[str, str]:
    """What is open, by number."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # the one that lists them is gone by now
            found[number] = os.readlink(f"/proc/self/fd/{number}")
    return found


def main(words: list[str], targets: list[str]) -> None:
    """Look everywhere."""
    everywhere = mounts()
    own = [*SYSTEM, *OURS, "/"]
    toolchains = [m for m in everywhere if not any(re.match(f"{o}(/|$)", m) for o in own if o)]
    toolchains = [m for m in toolchains if m not in ("/", *PLACES)]
    listed = sorted(files(toolchains))
    found = {
        "environment": dict(os.environ),
        "top": sorted(os.listdir("/")),
        "files": listed,
        "toolchains": toolchains,
        "installed": [str(f) for e in sys.path for f in Path(e, "kabuild").glob("**/*")],
        "sources": sources(),
        "texts": texts(words, listed),
        "processes": processes(),
        "connections": connections(targets),
        "calls": allowed_calls(),
        "descriptors": descriptors(),
        "dev": sorted(os.listdir("/dev")),
        "ids": [os.getuid(), os.getgid(), *os.getgroups()],
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), json.loads(sys.argv[2]))
