"""Stores that test runs keep: what was judged under a key is not judged again.

They lie in ``KABUILD_TEST_STORE``, by default ``~/.cache/kabuild-tests``; ``make test-all`` begins
with empty ones. A key has everything that can change a verdict but kabuild itself, which runs the
action, and the kernel of the operating system, which confines it. So each version of these two has
stores of its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
_RUN_BY = ("base", "model", "platform", "toolchain", "store", "sandbox", "execution")
_VERSIONS = 3  # how many are kept: that of each branch that somebody works on
_held: list[int] = []


def _root() -> Path:
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kabuild-tests"
    root = Path(os.environ.get("KABUILD_TEST_STORE") or cached)
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:  # a user without a home
        root = Path(tempfile.gettempdir()) / f"kabuild-tests-{os.getuid()}"
        root.mkdir(exist_ok=True, mode=0o700)
    return root.resolve()


ROOT = _root()
USER_DATA = ROOT / "data"
"""Has the key that seals the results: without it, none of them is believed."""


@cache
def kept(name: str) -> Path:
    """The directory of the stores called ``name``. Those of versions not used lately are removed.

    It is in use, and not removed, until this process ends.
    """
    versions = ROOT / name
    directory = versions / _version()
    directory.mkdir(parents=True, exist_ok=True)
    _hold(_lock(directory, fcntl.LOCK_SH))
    os.utime(directory)
    for old in sorted(versions.iterdir(), key=lambda path: path.stat().st_mtime)[:-_VERSIONS]:
        with contextlib.suppress(BlockingIOError):
            fd = _lock(old, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(old, ignore_errors=True)
            os.close(fd)
    return directory


@contextlib.contextmanager
def kept_alone(name: str) -> Iterator[Path]:
    """The directory of the stores called ``name``, for one process at a time."""
    directory = kept(name)
    with (directory / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield directory


def kept_store(name: str) -> Path:
    """A kept store that several builds at once may use as theirs."""
    return kept(name) / "store"


def _hold(fd: int) -> None:
    _held.append(fd)


@cache
def digest_of(parts: tuple[str, ...]) -> str:
    """A digest of packages and modules of kabuild, which are in no key."""
    code = hashlib.sha256()
    for part in parts:
        path = REPOSITORY / "kabuild" / part
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            code.update(file.read_bytes())
    return code.hexdigest()


def imported_by(*modules: str) -> tuple[str, ...]:
    """These modules of kabuild, and those that they import from the same package.

    All are paths below ``kabuild``, such as ``execution/local.py``; what is itself a package is
    named as a whole.
    """
    found: set[str] = set()
    todo = list(modules)
    while todo:
        if (module := todo.pop()) not in found:
            found.add(module)
            package = module.partition("/")[0]
            path = REPOSITORY / "kabuild" / module
            for file in [path] if path.is_file() else path.rglob("*.py"):
                names = re.findall(rf"from kabuild\.{package}\.(\w+)", file.read_text())
                todo += [_part(package, name) for name in names]
    return tuple(sorted(found))


def _part(package: str, name: str) -> str:
    """A module of a package, or a package in it."""
    whole = f"{package}/{name}"
    return whole if (REPOSITORY / "kabuild" / whole).is_dir() else f"{whole}.py"


def _version() -> str:
    said = f"{platform.platform()} {digest_of(_RUN_BY)}"
    return hashlib.sha256(said.encode()).hexdigest()[:16]


def _lock(directory: Path, how: int) -> int:
    """Lock a directory until the descriptor is closed. Raises ``BlockingIOError``."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, how)
    except BlockingIOError:
        os.close(fd)
        raise
    return fd
