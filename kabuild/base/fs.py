"""Files, written so that a reader sees all of a file or none of it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path


def atomic_write(path: Path, data: bytes, *, mode: int = 0o644, durable: bool = False) -> None:
    """Write ``data`` to ``path`` through a temporary file beside it and a rename.

    Safe to kill at any moment and safe with several writers: the last rename wins whole.
    ``durable`` also survives a power cut. Raises ``OSError``.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{secrets.token_hex(6)}.tmp"
    try:
        with temporary.open("wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def is_inside(path: str) -> bool:
    """Whether a relative POSIX path stays below its root: no ``..``, not absolute, not empty."""
    parts = path.split("/")
    return bool(path) and not path.startswith("/") and ".." not in parts and "\0" not in path


def remove_tree(path: Path) -> None:
    """Remove a directory with all in it, read-only or not; nothing where there is none.

    Raises ``OSError``.
    """
    if not path.is_dir() or path.is_symlink():
        path.unlink(missing_ok=True)
        return
    for directory, _, _ in os.walk(path):
        Path(directory).chmod(0o755)
    shutil.rmtree(path)
