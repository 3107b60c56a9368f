"""Stores with results that were used at chosen times."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kabuild.model.digest import Digest
from kabuild.model.result import ActionResult, OutputFile
from kabuild.store import DiskActionCache, DiskCas, Store
from kabuild.store.merkle import action_message, command_message, platform_message
from kabuild.store.merkle import build as directory

OLD = 1_600_000_000


@dataclass(frozen=True)
class Shelf:
    """A store, and ways to put things into it that were last used at some time."""

    store: Store

    @property
    def root(self) -> Path:
        return self.store.root

    def blob(self, data: bytes, used: float = OLD) -> Digest:
        """A blob that was last used at ``used``."""
        digest = self.store.cas.put(data)
        self.age(digest, used)
        return digest

    def age(self, blob: Digest, used: float = OLD) -> None:
        """Say that a blob was last used at ``used``."""
        os.utime(self.blob_path(blob), (used, used))

    def result(
        self,
        name: str,
        files: Iterable[Digest],
        used: float = OLD,
        *,
        hermetic: bool = True,
        directories: tuple[str, ...] = (),
    ) -> Digest:
        """A result of the action called ``name``, with its key's messages; all of that age."""
        cas = self.store.cas
        properties = [("platform", "cpu"), *([] if hermetic else [("hermetic", "false")])]
        platform = platform_message(properties)
        command = cas.put(command_message(("run", name), {}, ("x",), platform))
        key = cas.put(action_message(command, cas.put(directory([]).wire), 10.0, platform))
        outputs = tuple(OutputFile(f"d/{n}", digest) for n, digest in enumerate(files))
        result = ActionResult(0, outputs, seconds=1.0, directories=directories)
        self.store.actions.put(key, result)
        os.utime(self.result_path(key), (used, used))
        for digest in (key, command):
            self.age(digest, used)
        return key

    def blob_path(self, blob: Digest) -> Path:
        assert isinstance(self.store.cas, DiskCas)
        return Path(self.store.cas.path_of(blob))

    def result_path(self, key: Digest) -> Path:
        assert isinstance(self.store.actions, DiskActionCache)
        return Path(self.store.actions.path_of(key))

    def has(self, blob: Digest) -> bool:
        """Whether a blob is there; not a use."""
        return self.blob_path(blob).exists()

    def knows(self, key: Digest) -> bool:
        """Whether there is an entry; not a use."""
        return self.result_path(key).exists()

    def size(self) -> int:
        """Bytes of all results and blobs."""
        files = (path for kind in ("ac", "cas") for path in (self.root / kind).rglob("*"))
        return sum(path.stat().st_size for path in files if path.is_file())


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(Store.open(tmp_path / "store"))
