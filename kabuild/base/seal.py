"""Seals: proof that this user wrote a file of the store, under this name.

A seal is an HMAC-SHA256 with a random key of the user's. The key lies outside of every store, so
nobody who can write only the store can forge a result. A seal binds content to a kind and a name:
it is not valid for another key or file. A lost key costs only time: what it sealed is made again.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import Path

from kabuild.base.fs import atomic_write
from kabuild.base.reading import open_plain
from kabuild.base.user_dirs import home_directory, xdg_directory

KEY_FILE = "seal.key"
LOCK_FILE = "seal.lock"
SIZE = 40
"""Bytes of a seal: 8 that name the key, 32 of the HMAC."""

_KEY_SIZE = 32
_MARK_SIZE = 8
_MAGIC = b"kabuild sealed 1 "


class Trust(Enum):
    """What a seal says, in the words of a report."""

    SEALED = "sealed"
    UNSEALED = "not sealed"
    FOREIGN = "sealed with another key"
    FALSE = "changed after it was sealed"


class UnsealedError(ValueError):
    """A file that this user did not seal, or that has changed since."""

    def __init__(self, trust: Trust) -> None:
        super().__init__(f"it is {trust.value}" if trust is not Trust.FALSE else "it was changed")
        self.trust = trust


@dataclass(frozen=True)
class Seal:
    """Makes and checks seals with one key.

    ``problem`` says why the user's key cannot be read or made, so that the key is this process's.
    """

    key: bytes = field(repr=False)
    problem: str = ""

    @cached_property
    def mark(self) -> bytes:
        """Identifies the key without revealing it."""
        return hmac.digest(self.key, b"kabuild seal key", "sha256")[:_MARK_SIZE]

    def of(self, kind: str, name: str, data: bytes) -> bytes:
        """The seal of ``data``, which is the ``kind`` called ``name``; neither has a NUL."""
        code = hmac.new(self.key, f"{kind}\0{name}\0".encode(), hashlib.sha256)
        code.update(data)
        return self.mark + code.digest()

    def check(self, kind: str, name: str, data: bytes, seal: bytes) -> Trust:
        """Whether ``seal`` is that of ``data`` under this kind and name."""
        if len(seal) != SIZE:
            return Trust.UNSEALED
        if seal[:_MARK_SIZE] != self.mark:
            return Trust.FOREIGN
        same = hmac.compare_digest(seal, self.of(kind, name, data))
        return Trust.SEALED if same else Trust.FALSE

    def wrap(self, kind: str, name: str, body: bytes) -> bytes:
        """The content of a sealed file: a line with the seal, then ``body``."""
        return _MAGIC + self.of(kind, name, body).hex().encode() + b"\n" + body

    def unwrap(self, kind: str, name: str, content: bytes) -> bytes:
        """The body of a sealed file. Raises UnsealedError."""
        head, _, body = content.partition(b"\n")
        try:
            seal = bytes.fromhex(head.removeprefix(_MAGIC).decode())
        except ValueError:
            seal = b""
        as_written = head == _MAGIC + seal.hex().encode()
        trust = self.check(kind, name, body, seal if as_written else b"")
        if trust is not Trust.SEALED:
            raise UnsealedError(trust)
        return body


def data_home(env: Mapping[str, str] = os.environ) -> Path:
    """The user's own files: ``$XDG_DATA_HOME/kabuild``, else ``~/.local/share/kabuild``."""
    if base := xdg_directory("XDG_DATA_HOME", env):
        return base / "kabuild"
    return home_directory(env) / ".local" / "share" / "kabuild"


def user_seal(env: Mapping[str, str] = os.environ) -> Seal:
    """The seal of this user; the key is made on first use.

    Never fails: without a user's key, the process gets its own key. A file that is no key, or that
    others can read, stays as it is: it may be the copy of one that is needed elsewhere.
    """
    path = Path(KEY_FILE)
    try:
        path = data_home(env) / KEY_FILE
        return Seal(_read(path) or _make(path))
    except (OSError, RuntimeError) as error:  # RuntimeError: no home directory
        return Seal(secrets.token_bytes(_KEY_SIZE), _said(path, error))


def key_problem(env: Mapping[str, str] = os.environ) -> str:
    """Why the user's key cannot be used; empty if it can, or if there is none yet. Makes none."""
    path = Path(KEY_FILE)
    try:
        path = data_home(env) / KEY_FILE
        _read(path)
    except (OSError, RuntimeError) as error:
        return _said(path, error)
    return ""


def _said(path: Path, error: Exception) -> str:
    return f"{path}: {getattr(error, 'strerror', None) or error}"


def _read(path: Path) -> bytes | None:
    """The key; None if there is no file.

    Raises ``OSError``, also if others can read it, for a file that is no key, and for anything but
    a file: a key is never read from a device, nor is one written to it.
    """
    try:
        with open_plain(path) as file:
            status = os.fstat(file.fileno())
            key = file.read(_KEY_SIZE + 1)
    except FileNotFoundError:
        return None
    if status.st_mode & 0o077:
        raise OSError(errno.EPERM, f"others can read it; make it yours: chmod 600 {path}")
    if len(key) != _KEY_SIZE:
        what = f"it has {status.st_size} bytes, and a key has {_KEY_SIZE}, of any value"
        raise OSError(errno.EINVAL, f"{what}; remove it, and the next build makes one")
    return key


def _make(path: Path) -> bytes:
    """A new key, or the one that another process made meanwhile. Raises ``OSError``."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = os.open(path.parent / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        key = _read(path)
        if key is None:
            key = secrets.token_bytes(_KEY_SIZE)
            atomic_write(path, key, mode=0o600, durable=True)
        return key
    finally:
        os.close(lock)
