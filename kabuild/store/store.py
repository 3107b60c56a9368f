"""The local store: one directory with everything that outlives a build."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Self

from kabuild.base.errors import StoreError
from kabuild.base.seal import Seal, user_seal
from kabuild.store.action_cache import ActionCache, DiskActionCache
from kabuild.store.cas import Cas, DiskCas
from kabuild.store.contents import BLOBS
from kabuild.store.faults import writing
from kabuild.store.file_index import FileIndex
from kabuild.store.journals import Journals
from kabuild.store.limit import size_limit
from kabuild.store.paths import INDEX, LEASES, MEMORIES, SCRATCH, default_path, journals_of
from kabuild.store.scratch import Scratch
from kabuild.store.sealed_entry import Distrusted
from kabuild.store.usage import Tally, Usage
from kabuild.store.user_settings import read_user_settings


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


@dataclass(frozen=True)
class Store:
    """Blobs, results, the file index, and places for work in progress.

    Attributes:
        root: the directory; ``cas/`` and ``ac/`` in it are a Bazel disk cache.
        leases: directory of the lock files by which processes share devices.
        timings: file with the times of actions, for planning only.
        seal: this user's; entries without it are not trusted.
        added: counts the bytes that this process stores.
    """

    root: Path
    cas: Cas
    actions: ActionCache
    index: FileIndex
    scratch: Scratch
    seal: Seal
    warn: Callable[[str], None] = field(default=lambda _: None, compare=False)
    distrusted: Distrusted = field(default_factory=Distrusted, compare=False)
    added: Tally = field(default_factory=Tally, compare=False)
    remembering: BestEffort = field(default_factory=BestEffort, compare=False)

    @classmethod
    def open(
        cls, path: Path | None = None, *, warn: Callable[[str], None] = lambda _: None
    ) -> Store:
        """The store at ``path``, created if missing; leftovers of dead processes are removed.

        ``warn`` is called with damage and unsealed results. Raises StoreError(STORE_UNWRITABLE or
        STORE_FULL), and LoadError and UsageError for invalid user settings.
        """
        read_user_settings()
        size_limit()
        root = (path or default_path()).absolute()
        added = Tally()
        _create(root)
        seal = user_seal()
        if seal.problem:
            warn(f"no key to seal results, so no later build will find them: {seal.problem}")
        scratch = Scratch(root / SCRATCH)
        scratch.sweep()
        distrusted = Distrusted()
        cas = DiskCas(root, scratch, warn=warn, added=added)
        return cls(
            root=root,
            cas=cas,
            actions=DiskActionCache(
                root, scratch, cas, seal, warn=warn, added=added, distrusted=distrusted
            ),
            index=FileIndex(root / INDEX, seal),
            scratch=scratch,
            seal=seal,
            warn=warn,
            distrusted=distrusted,
            added=added,
        )

    @property
    def leases(self) -> Path:
        """Directory of the lock files by which processes share devices."""
        return self.root / LEASES

    @property
    def timings(self) -> Path:
        """File with the times of actions."""
        return self.root / "timings.json"

    @property
    def memories(self) -> Path:
        """Directory of the memories of earlier builds, see ``build_memo``."""
        return self.root / MEMORIES

    @property
    def journals(self) -> Journals:
        """The journals of interrupted actions."""
        return Journals(journals_of(self.root))

    def renew(self) -> None:
        """Create what somebody has removed since; for programs that build more than once.

        Raises StoreError.
        """
        _create(self.root)
        self.scratch.renew()

    def put_stream(self, chunks: Iterable[bytes]) -> None:
        """Store a blob that comes in pieces.

        Raises StoreError and whatever ``chunks`` raises; nothing is stored then.
        """
        temporary = self.scratch.path("stream")
        try:
            with writing(str(self.root)), temporary.open("xb") as file:
                for chunk in chunks:
                    file.write(chunk)
            self.cas.put_file(temporary, move=True)
        finally:
            temporary.unlink(missing_ok=True)

    def best_effort(self) -> AbstractContextManager[None]:
        """Wraps writes that only help later builds: failures give a single warning."""
        return self.remembering(self.warn)

    def tell(self) -> int:
        """Add the bytes that this process stored to the store's usage, and return them.

        Raises StoreError.
        """
        added = self.added.take()
        with writing(str(self.root)):
            Usage(self.root).add(added)
        return added

    def close(self) -> None:
        """Save the file index and the usage, and remove this process's temporary files.

        A store that cannot be written is only a warning.
        """
        try:
            self.distrusted.tell(self.warn)
            with self.best_effort():
                self.index.save()
            with self.best_effort():
                self.tell()
        finally:
            self.scratch.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _create(root: Path) -> None:
    """Create an empty store unless there is one. Raises StoreError."""
    with writing(str(root)):
        if not (root / BLOBS).exists():
            root.mkdir(parents=True, exist_ok=True)
            Usage(root).set(0)
