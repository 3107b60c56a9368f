"""Namespaces for the fuzzer: whatever the program does wrong there, the machine never notices.

The machine is read-only. ``/tmp`` is empty and ends with the jail, ``/dev`` has devices of its
own, there is no network, and process 1 is the jail's first: whoever is left over is its child.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEVICES = {
    "null": (1, 3),
    "zero": (1, 5),
    "full": (1, 7),
    "random": (1, 8),
    "urandom": (1, 9),
    "tty": (5, 0),
}
_STAGING = "/mnt"
_UNSHARE = ("unshare", "--mount", "--pid", "--ipc", "--net", "--fork", "--kill-child")


def jailed(argv: Sequence[str]) -> list[str]:
    """The command line that runs ``argv`` in namespaces that ``enter`` completes."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return [*_UNSHARE, *user, "--propagation", "private", "--mount-proc", *argv]


def enter(size: str = "3g") -> None:
    """Make this the jail that ``jailed`` has begun."""
    devices = Path("/dev")
    kept = {name: os.open(devices / name, os.O_PATH | os.O_CLOEXEC) for name in DEVICES}
    for point in _mount_points():
        if not point.startswith(("/proc", "/dev")):
            _mount("-o", "remount,bind,ro", point, may_fail=True)
    options = f"size={size},mode=1777"
    if ROOT.is_relative_to("/tmp"):
        _cover(Path("/tmp"), ROOT, options)
    else:
        _mount("-t", "tmpfs", "-o", options, "none", "/tmp")
    _open_up(Path(sys.base_prefix))
    _mount("-t", "tmpfs", "-o", "mode=755", "none", "/dev")
    make_devices(kept)
    for fd in kept.values():
        os.close(fd)


def _open_up(directory: Path) -> None:
    """Let other users, too, reach the Python that is in a directory such as root's home."""
    for parent in reversed(directory.parents):
        if not parent.stat().st_mode & 0o001:
            child = parent / directory.relative_to(parent).parts[0]
            _cover(parent, child, "mode=755")


def _cover(directory: Path, kept: Path, options: str) -> None:
    """Mount an empty file system that holds nothing but what is in ``kept``."""
    _mount("--bind", str(kept), _STAGING)
    _mount("-t", "tmpfs", "-o", options, "none", str(directory))
    kept.mkdir(parents=True)
    _mount("--bind", _STAGING, str(kept))
    _mount_off(_STAGING)


def make_devices(kept: Mapping[str, int] | None = None) -> None:
    """Fill /dev, whatever is there. ``kept`` has those to borrow where none can be made."""
    devices = Path("/dev")
    for path in devices.iterdir():
        if not path.is_mount():
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name, (major, minor) in DEVICES.items():
        try:
            os.mknod(devices / name, stat.S_IFCHR | 0o666, os.makedev(major, minor))
            (devices / name).chmod(0o666)
        except PermissionError:  # without root they are borrowed
            if kept is None:
                raise
            (devices / name).touch()
            _mount("--bind", f"/proc/{os.getpid()}/fd/{kept[name]}", str(devices / name))
    (devices / "shm").mkdir(mode=0o1777)
    (devices / "shm").chmod(0o1777)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        (devices / name).symlink_to(f"/proc/self/fd/{number}")
    (devices / "fd").symlink_to("/proc/self/fd")


def devices_are_whole() -> bool:
    """Whether nothing in /dev was replaced, removed or added."""
    expected = {*DEVICES, "shm", "stdin", "stdout", "stderr", "fd"}
    if {path.name for path in Path("/dev").iterdir()} != expected:
        return False
    links = all(Path("/dev", name).is_symlink() for name in ("stdin", "stdout", "stderr", "fd"))
    return links and all(Path("/dev", name).is_char_device() for name in DEVICES)


def mounts() -> int:
    """How many file systems are mounted here."""
    return len(_mount_points())


def others(known: set[int]) -> dict[int, str]:
    """The processes of the jail that are not ``known``, with their names; the dead left out."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) not in known:
            with contextlib.suppress(OSError):
                line = (entry / "stat").read_text()
                if line.rpartition(")")[2].split()[0] not in "ZX":
                    found[int(entry.name)] = line[line.index("(") + 1 : line.rindex(")")]
    return found


def reap() -> None:
    """Bury the dead that have nobody else: process 1 has to."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _mount(*arguments: str, may_fail: bool = False) -> None:
    subprocess.run(["mount", *arguments], check=not may_fail, capture_output=may_fail)


def _mount_off(point: str) -> None:
    subprocess.run(["umount", point], check=True)


def _mount_points() -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line.split()[4].replace("\\040", " ") for line in lines]
