"""Private copies of bundles and of files beside them, which nobody changes between two reads."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from kabuild.base.container import DamagedError, pieces
from kabuild.base.errors import Reason, UsageError
from kabuild.base.reading import read_plain
from kabuild.bundle.manifest import damaged
from kabuild.store import Store
from kabuild.store.faults import writing


def copied_bundle(path: Path, store: Store) -> Path:
    """A copy of a bundle, for commands that read it more than once: it lasts as long as ``store``.

    Raises BundleError, ``OSError`` if the bundle cannot be opened, and StoreError.
    """
    try:
        content = pieces(path)
        first = next(content, b"")  # opens it
        return _written(chain([first], content), store)
    except DamagedError as error:
        raise damaged(f"{path} is damaged or not a bundle: {error}") from None


def copied_file(path: Path, store: Store) -> Path:
    """A copy of a small file. Raises UsageError if it cannot be read, and StoreError."""
    try:
        content = read_plain(path)
    except OSError as error:
        hint = "replace the file, or remove it"
        what = f"{path}: {error.strerror}"
        raise UsageError(Reason.BAD_FLAG, what, hint=hint) from None
    return _written([content], store)


def _written(content: Iterable[bytes], store: Store) -> Path:
    target = store.scratch.path("copy")
    with writing(str(store.root)), target.open("xb") as file:
        file.writelines(content)
    return target
