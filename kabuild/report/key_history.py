"""The keys of the last builds in a workspace, for each agent or solution.

A view in ``out/`` shows the last build of an action. Two agents have the same action of a task,
with very different keys, so each is compared with its own earlier key.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kabuild.base.own_files import write_own
from kabuild.base.reading import read_plain
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.options import Options
from kabuild.model.result import Settled
from kabuild.report.views import last_key

_DIRECTORY = ".keys"
_MOST = 100
"""The number of histories that are kept: a search may try thousands of solutions."""


class KeyHistory:
    """The last keys of one agent or solution on one kind of platform.

    It is disposable like all of ``out/``, and read on first use.
    """

    def __init__(self, out: Path, options: Options) -> None:
        self._out = out
        solution = options.solution
        given = f"solution {solution.path}" if solution else f"agent {options.agent}"
        name = Digest.of(f"{options.platform.name} {given}".encode()).hash
        self._path = out / _DIRECTORY / name
        self._keys: dict[str, str] | None = None

    def own(self, label: Label) -> Digest | None:
        """The key of an action in the last such build."""
        try:
            hash_, size = self._read()[str(label)].split("/")
            return Digest(hash_, int(size))
        except (KeyError, ValueError):
            return None

    def last(self, label: Label) -> Digest | None:
        """The same, or else the key in the last build of any kind."""
        return self.own(label) or last_key(self._out, label)

    def record(self, settled: Iterable[Settled]) -> None:
        """Add the keys of a build. Raises ``OSError``."""
        before = self._read()
        new = {str(item.label): str(item.key) for item in settled if item.key and item.result}
        if before.items() >= new.items():
            return
        if not before:
            self._make_room()
        after = {**before, **new}
        text = "".join(f"{label} {key}\n" for label, key in after.items())
        write_own(self._path, text.encode())
        self._keys = after

    def _read(self) -> dict[str, str]:
        if self._keys is None:
            try:
                lines = read_plain(self._path).decode().splitlines()
            except (OSError, ValueError):
                lines = []
            self._keys = dict(pair for line in lines if len(pair := line.rsplit(" ", 1)) == 2)
        return self._keys

    def _make_room(self) -> None:
        """Remove the oldest histories."""
        known = self._path.parent.iterdir() if self._path.parent.is_dir() else ()
        oldest = sorted(known, key=lambda path: path.stat().st_mtime)
        for path in oldest[: max(0, len(oldest) - _MOST + 1)]:
            path.unlink(missing_ok=True)
