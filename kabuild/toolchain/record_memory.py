"""A cache of the digests of RECORDs, so that a second run need not read them."""

from __future__ import annotations

from pathlib import Path

from kabuild.base.bounded_json import read_json
from kabuild.base.canonical import canonical_json
from kabuild.base.own_files import write_own
from kabuild.base.reading import read_plain
from kabuild.base.seal import Seal
from kabuild.model.digest import Digest
from kabuild.toolchain.fingerprint import FileDigest, hash_record

KIND = "records"


class RecordMemory:
    """``hash_record`` by the digest of the whole file, kept in one small sealed file.

    The digest of the whole file is cheap, since the file index has it. A cache that is lost,
    damaged or not sealed costs only time.
    """

    def __init__(self, path: Path, file_digest: FileDigest, seal: Seal) -> None:
        self._seal = seal
        self._path = path
        self._file_digest = file_digest
        self._known: dict[str, list[str | int]] | None = None
        self._is_new = False

    def __call__(self, path: Path) -> Digest:
        """As ``hash_record``. Raises ``OSError``."""
        known = self._load()
        whole = self._file_digest(path).hash
        if whole not in known:
            digest = hash_record(path)
            known[whole] = [digest.hash, digest.size]
            self._is_new = True
        hash_, size = known[whole]
        return Digest(str(hash_), int(size))

    def save(self) -> None:
        """Write new entries, if any. Raises ``OSError``."""
        if self._is_new and not self._seal.problem:
            body = canonical_json(self._known)
            write_own(self._path, self._seal.wrap(KIND, "", body))
            self._is_new = False

    def _load(self) -> dict[str, list[str | int]]:
        if self._known is None:
            try:
                known = read_json(self._seal.unwrap(KIND, "", read_plain(self._path)))
                for hash_, size in known.values():
                    Digest(hash_, size)
            except (OSError, ValueError, AttributeError, TypeError):
                known = {}
            self._known = known
        return self._known
