"""The file system of a sandbox: a fresh root that holds what a ``View`` names, nothing else.

Self-contained (standard library only), because it travels with ``namespaces.py`` into the input
root of gate actions. Needs Linux 5.12 or later (``mount_setattr``).

This runs in a process that was forked a moment ago, where touching a page for the first time
costs microseconds. Hence plain ``os`` calls: ``pathlib`` would double the time.
"""
# ruff: noqa: PTH102, PTH103, PTH106, PTH110, PTH113, PTH114, PTH115, PTH116, PTH118, PTH119, PTH120, PTH211

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial

USER_ID = 1000
"""User and group id inside every sandbox, for every user."""

_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_BIND, _MS_REC, _MS_PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_MNT_DETACH = 2
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_AT_RECURSIVE = 0x8000
_MOUNT_SETATTR = 442
_SIOCSIFFLAGS, _IFF_UP = 0x8914, 1
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}

_OLD_ROOT = "/.host"
_TMP, _SHM = "/tmp", "/dev/shm"  # noqa: S108 - the sandbox's own
_DEFAULT_SHM_BYTES = 64 << 20
_DEVICES = ("null", "zero", "full", "random", "urandom")
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
}
_ETC = {
    "passwd": f"user:x:{USER_ID}:{USER_ID}::/tmp:/bin/sh\n",
    "group": f"user:x:{USER_ID}:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_SYSTEM_PATHS = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/etc/ld.so.cache", "/etc/alternatives", "/sys/devices/system/cpu"),
)

_COPIED = frozenset({"/etc/ld.so.cache"})
"""Small files that package managers replace at any time. A replaced file cannot be bound
again, so an inner sandbox could not be built after the outer one had bound the old file."""

_MOST_LINKS = 40  # as the kernel follows in one path

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Bind:
    """A host file, device or tree at ``source``, seen at ``target`` (both absolute).

    Read-only unless ``writable``, never set-user-id, and without device files unless it is
    placed below ``/dev``. A symbolic link bound onto its own path stays a symbolic link, so
    that ``/lib -> usr/lib`` looks inside as it does outside; any other link is followed.
    """

    source: str
    target: str
    writable: bool = False


@dataclass(frozen=True)
class View:
    """What a worker can see.

    ``tmpfs`` gives private writable directories as (path, bytes); one below a bind needs its
    directory to exist there. ``/dev`` holds null, zero, full, random, urandom and shm, besides
    what is bound into it; shm has 64 MiB unless ``tmpfs`` says otherwise. ``/etc`` holds stubs
    of passwd, group, hosts and nsswitch.conf where these are not bound. ``network`` keeps the
    caller's network; ``loopback`` brings up 127.0.0.1 in a network namespace. Without
    ``mount_proc`` there is no ``/proc``.
    """

    binds: tuple[Bind, ...] = ()
    tmpfs: tuple[tuple[str, int], ...] = ((_TMP, 64 << 20),)
    cwd: str = "/"
    hostname: str = "sandbox"
    network: bool = False
    loopback: bool = False
    mount_proc: bool = True


class _Kind(Enum):
    """How a bind is placed: the kind of its mount point, if it has one."""

    LINK = 1
    DIRECTORY = 2
    FILE = 3
    COPY = 4


def system_binds() -> tuple[Bind, ...]:
    """What programs of this machine need to start: libraries, commands, the CPU topology."""
    return tuple(Bind(path, path) for path in _SYSTEM_PATHS if os.path.lexists(path))


def build_root(view: View) -> None:
    """Replace the root directory of this process by one that holds ``view``.

    Outer paths are placed before those inside them. Needs capabilities over a mount namespace
    of its own, and pid, IPC and UTS namespaces. Raises ``OSError`` naming the step that failed.
    """
    # While the host's paths still mean the host's files:
    sources = [(bind, *_inspect(bind)) for bind in view.binds]
    shm_bytes = dict(view.tmpfs).get(_SHM, _DEFAULT_SHM_BYTES)

    socket.sethostname(view.hostname)
    check(_libc.setdomainname(b"", ctypes.c_size_t(0)), "setdomainname")
    if view.loopback and not view.network:
        _bring_up_loopback()
    _enter_empty_root()
    if view.mount_proc:
        os.mkdir("/proc")
        _mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    _build_dev(shm_bytes)
    links = {bind.target: source for bind, kind, source in sources if kind is _Kind.LINK}
    placements: list[tuple[str, Callable[[], None]]] = []
    for bind, kind, source in sources:
        target = _without_links(bind.target, links)
        placements.append((target, partial(_place, bind, kind, source, target)))
    for path, size in view.tmpfs:
        if path != _SHM:
            mode = 0o1777 if path == _TMP else 0o755
            target = _without_links(path, links)
            placements.append((target, partial(_mount_tmpfs, target, size, mode)))
    for _, place in sorted(placements, key=lambda item: item[0].rstrip("/").count("/")):
        place()
    _write_stubs()
    check(_libc.umount2(_OLD_ROOT.encode(), _MNT_DETACH), "umount2")
    os.rmdir(_OLD_ROOT)
    _add_attributes("/dev", _ATTR_RDONLY | _ATTR_NOSUID)
    _add_attributes("/", _ATTR_RDONLY | _ATTR_NOSUID | _ATTR_NODEV)


def protect_proc() -> None:
    """Make everything in ``/proc`` read-only but the directories of the sandbox's own processes.

    The host's root stays the owner of the rest (``sys``, ``sysrq-trigger``, drivers, pid 1)
    even without capabilities, and some files are for everybody. The processes' own stay
    writable because GPU drivers write there. Only for the innermost sandbox: within it the
    kernel refuses to mount a ``/proc`` again.
    """
    for entry in os.scandir("/proc"):
        own = entry.name.isdecimal() and entry.name != "1"
        if own or entry.is_symlink():
            continue
        if entry.is_dir() or entry.stat().st_mode & 0o222:
            _mount(entry.path, entry.path, "none", _MS_BIND | _MS_REC)
            _add_attributes(entry.path, _ATTR_RDONLY, recursive=True)


def check(result: int, what: str) -> None:
    """Raise ``OSError`` for ``what`` when a C function returned a negative ``result``."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def write_file(path: str, text: str) -> None:
    """Write ``text`` in one call, as files in /proc demand; a missing file is made."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _inspect(bind: Bind) -> tuple[_Kind, str]:
    """The kind of a bind, and the link's text or the source without links."""
    if bind.source == bind.target and os.path.islink(bind.source):
        return _Kind.LINK, os.readlink(bind.source)
    source = os.path.realpath(bind.source)
    if bind.source in _COPIED:
        return _Kind.COPY, source
    is_directory = stat.S_ISDIR(os.stat(source).st_mode)
    return _Kind.DIRECTORY if is_directory else _Kind.FILE, source


def _without_links(path: str, links: Mapping[str, str]) -> str:
    """Where ``path`` is when all ``links`` above it are followed.

    What a link leads to may be placed after it: until then nothing can be made below the link.
    """
    for _ in range(_MOST_LINKS):
        above = (path[:end] for end, letter in enumerate(path) if letter == "/" and end)
        link = next((each for each in above if each in links), None)
        if link is None:
            break
        led = os.path.join(os.path.dirname(link), links[link])
        path = os.path.normpath(led + path[len(link) :])
    return path


def _bring_up_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", _IFF_UP))


def _enter_empty_root() -> None:
    """Make a tmpfs the root, with the old root below it at ``_OLD_ROOT``."""
    _mount("none", "/", "none", _MS_REC | _MS_PRIVATE)
    # Any directory will do: pivot_root uncovers it again, under the old root.
    base = next(entry.path for entry in os.scandir("/") if entry.is_dir(follow_symlinks=False))
    _mount("tmpfs", base, "tmpfs", _MS_NOSUID | _MS_NODEV, "size=64m,nr_inodes=16384,mode=755")
    old = base + _OLD_ROOT
    os.mkdir(old)
    number = ctypes.c_long(_PIVOT_ROOT[os.uname().machine])
    check(_libc.syscall(number, base.encode(), old.encode()), "pivot_root")
    os.chdir("/")


def _build_dev(shm_bytes: int) -> None:
    _mount_tmpfs("/dev", 1 << 20, 0o755)
    for name in _DEVICES:
        node = f"/dev/{name}"
        write_file(node, "")
        _mount(_OLD_ROOT + node, node, "none", _MS_BIND)
    for name, text in _DEVICE_LINKS.items():
        os.symlink(text, f"/dev/{name}")
    _mount_tmpfs(_SHM, shm_bytes, 0o1777)


def _place(bind: Bind, kind: _Kind, source: str, target: str) -> None:
    target = os.path.join(_made(os.path.dirname(target)), os.path.basename(target))
    if kind is _Kind.LINK:
        if not os.path.lexists(target):
            os.symlink(source, target)
        return
    if kind is _Kind.COPY:
        _copy(_OLD_ROOT + source, target)
        return
    if kind is _Kind.DIRECTORY:
        target = _made(target)
    elif not os.path.exists(target):
        write_file(target, "")
    try:
        _mount(_OLD_ROOT + source, target, "none", _MS_BIND | _MS_REC)
    except FileNotFoundError:
        # A sandbox around this one has a file that was replaced: it is there, and has no name.
        if kind is not _Kind.FILE or bind.writable or not os.path.isfile(_OLD_ROOT + source):
            raise
        _copy(_OLD_ROOT + source, target)
        return
    attributes = _ATTR_NOSUID if bind.writable else _ATTR_NOSUID | _ATTR_RDONLY
    if not target.startswith("/dev/"):
        attributes |= _ATTR_NODEV
    _add_attributes(target, attributes, recursive=True)


def _made(folder: str) -> str:
    """Make a directory and those above it; returns where it is.

    A directory that is there already may hold a link of the host, to something that is not bound:
    a package of Python that is installed elsewhere, say. What belongs below it goes there.
    """
    try:
        os.makedirs(folder, exist_ok=True)
    except (FileExistsError, FileNotFoundError):
        folder = os.path.realpath(folder)
        if f"{folder}/".startswith(f"{_OLD_ROOT}/"):
            raise  # nothing of the host's may be made
        os.makedirs(folder, exist_ok=True)
    return folder


def _copy(source: str, target: str) -> None:
    """A private copy, read-only once the root is."""
    try:
        with open(source, "rb") as original:
            content = original.read()
        with open(target, "wb") as copy:
            copy.write(content)
    except OSError as error:
        name = source.removeprefix(_OLD_ROOT)
        raise OSError(error.errno, f"copy {name}: {error.strerror}") from error


def _write_stubs() -> None:
    os.makedirs("/etc", exist_ok=True)
    for name, text in _ETC.items():
        path = f"/etc/{name}"
        if not os.path.exists(path):
            write_file(path, text)


def _mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    done = _libc.mount(
        source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    check(done, f"mount {source.removeprefix(_OLD_ROOT)} at {target}")


def _mount_tmpfs(target: str, size: int, mode: int) -> None:
    os.makedirs(target, exist_ok=True)
    # An inode costs the kernel about 1 KiB that `size` does not count.
    options = f"size={size},nr_inodes={max(1024, size // 4096)},mode={mode:o}"
    _mount("tmpfs", target, "tmpfs", _MS_NOSUID | _MS_NODEV, options)


def _add_attributes(target: str, attributes: int, *, recursive: bool = False) -> None:
    """Adds mount attributes; those that the host has locked stay as they are."""
    request = (ctypes.c_uint64 * 4)(attributes, 0, 0, 0)
    done = _libc.syscall(
        ctypes.c_long(_MOUNT_SETATTR),
        ctypes.c_long(-1),
        target.encode(),
        ctypes.c_long(_AT_RECURSIVE if recursive else 0),
        ctypes.byref(request),
        ctypes.c_long(ctypes.sizeof(request)),
    )
    check(done, f"mount_setattr {target}")
