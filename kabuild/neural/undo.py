"""What a command wrote is undone if it does not come to its end."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from kabuild.base.fs import atomic_write


@contextlib.contextmanager
def undone(directory: Path, files: Iterable[str]) -> Iterator[None]:
    """Put ``files`` of a directory back as they were if the block raises, also on Ctrl-C.

    Directories that are empty then are removed, the ``directory`` and new ones above it included.
    Raises ``OSError``.
    """
    before = {directory / name: _content(directory / name) for name in files}
    above = [parent for parent in directory.parents if not parent.exists()]
    try:
        yield
    except BaseException:
        for path, content in before.items():
            if content is None:
                path.unlink(missing_ok=True)
            elif content != _content(path):
                atomic_write(path, content)
        for home in (*dict.fromkeys(path.parent for path in before), directory, *above):
            with contextlib.suppress(OSError):  # it has other files, or is gone
                home.rmdir()
        raise


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None
