"""The local store: one directory with everything that outlives a build."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kabuild.store.action_cache import ActionCache, DiskActionCache
from kabuild.store.cas import Cas, DiskCas
from kabuild.store.faults import writing
from kabuild.store.paths import MEMORIES, default_path
from kabuild.store.scratch import Scratch
from kabuild.store.signatures import FileIndex


@dataclass(frozen=True)
class Store:
    """Blobs, results, the file index, and places for work in progress.

    Attributes:
        root: the directory; ``cas/`` and ``ac/`` in it are a Bazel disk cache.
        leases: directory of the lock files by which processes share devices.
        timings: file with how long actions took, for planning only.
    """

    root: Path
    cas: Cas
    actions: ActionCache
    index: FileIndex
    scratch: Scratch

    @classmethod
    def open(
        cls, path: Path | None = None, *, warn: Callable[[str], None] = lambda _: None
    ) -> Store:
        """The store at ``path``, made on first use; what dead processes left goes.

        ``warn`` hears of damaged blobs. Raises StoreError(STORE_UNWRITABLE or STORE_FULL).
        """
        root = (path or default_path()).absolute()
        with writing(str(root)):
            root.mkdir(parents=True, exist_ok=True)
        scratch = Scratch(root / "tmp")
        scratch.sweep()
        cas = DiskCas(root, scratch, warn=warn)
        return cls(
            root=root,
            cas=cas,
            actions=DiskActionCache(root, scratch, cas, warn=warn),
            index=FileIndex(root / "index"),
            scratch=scratch,
        )

    @property
    def leases(self) -> Path:
        """Directory of the lock files by which processes share devices."""
        return self.root / "leases"

    @property
    def timings(self) -> Path:
        """File with how long actions took."""
        return self.root / "timings.json"

    @property
    def memories(self) -> Path:
        """Directory of what earlier builds came to, see ``memory``."""
        return self.root / MEMORIES

    def close(self) -> None:
        """Save the file index and remove this process's temporary files."""
        try:
            self.index.save()
        finally:
            self.scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
