"""Writes that only make later builds faster, and whose failure does not fail a build."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock

from kabuild.base.errors import StoreError


class BestEffort:
    """Warns the user once that a store cannot be written, however many writes fail.

    For memories of files and builds, in a store that is read-only, full or another user's. Results
    and their blobs do not belong here: a build that cannot store its results has failed.
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._told = False

    @contextmanager
    def __call__(self, warn: Callable[[str], None]) -> Iterator[None]:
        """Turn the first StoreError of the body into a warning, and go on."""
        try:
            yield
        except StoreError as error:
            with self._guard:
                first, self._told = not self._told, True
            if first:
                warn(f"{error.message}; nothing is remembered for the next build")
