"""The local store: one directory with everything that outlives a build."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from kabuild.store.action_cache import ActionCache, DiskActionCache
from kabuild.store.cas import Cas, DiskCas
from kabuild.store.contents import BLOBS
from kabuild.store.faults import writing
from kabuild.store.journals import Journals
from kabuild.store.paths import JOURNALS, LEASES, MEMORIES, SCRATCH, default_path
from kabuild.store.scratch import Scratch
from kabuild.store.signatures import FileIndex
from kabuild.store.usage import Tally, Usage


@dataclass(frozen=True)
class Store:
    """Blobs, results, the file index, and places for work in progress.

    Attributes:
        root: the directory; ``cas/`` and ``ac/`` in it are a Bazel disk cache.
        leases: directory of the lock files by which processes share devices.
        timings: file with how long actions took, for planning only.
        added: counts the bytes that this process stores.
    """

    root: Path
    cas: Cas
    actions: ActionCache
    index: FileIndex
    scratch: Scratch
    added: Tally = field(default_factory=Tally, compare=False)

    @classmethod
    def open(
        cls, path: Path | None = None, *, warn: Callable[[str], None] = lambda _: None
    ) -> Store:
        """The store at ``path``, made on first use; what dead processes left goes.

        ``warn`` hears of damaged blobs. Raises StoreError(STORE_UNWRITABLE or STORE_FULL).
        """
        root = (path or default_path()).absolute()
        added = Tally()
        with writing(str(root)):
            if not (root / BLOBS).exists():
                root.mkdir(parents=True, exist_ok=True)
                Usage(root).set(0)
        scratch = Scratch(root / SCRATCH)
        scratch.sweep()
        cas = DiskCas(root, scratch, warn=warn, added=added)
        return cls(
            root=root,
            cas=cas,
            actions=DiskActionCache(root, scratch, cas, warn=warn, added=added),
            index=FileIndex(root / "index"),
            scratch=scratch,
            added=added,
        )

    @property
    def leases(self) -> Path:
        """Directory of the lock files by which processes share devices."""
        return self.root / LEASES

    @property
    def timings(self) -> Path:
        """File with how long actions took."""
        return self.root / "timings.json"

    @property
    def memories(self) -> Path:
        """Directory of what earlier builds came to, see ``memory``."""
        return self.root / MEMORIES

    @property
    def journals(self) -> Journals:
        """What interrupted actions had found out."""
        return Journals(self.root / JOURNALS)

    def tell(self) -> int:
        """Add what this process stored to the store's usage; the bytes. Raises StoreError."""
        added = self.added.take()
        with writing(str(self.root)):
            Usage(self.root).add(added)
        return added

    def close(self) -> None:
        """Save the file index and the usage, and remove this process's temporary files."""
        try:
            self.index.save()
            self.tell()
        finally:
            self.scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
