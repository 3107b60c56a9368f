"""``out/``: disposable views of what the store holds, for people and their tools."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

from kabuild.base.fs import atomic_write, is_inside
from kabuild.model.digest import Digest
from kabuild.model.label import Label
from kabuild.model.result import Settled

Link = Callable[[Digest, Path], None]
_MARK = ".key"


def view_of(out: Path, label: Label) -> Path:
    """Where the outputs of one action show: ``out/tasks/hip2hip/softmax/softmax.perf``."""
    return out / label.package / label.name


def last_key(out: Path, label: Label) -> Digest | None:
    """The key whose outputs one view shows: that of the last build that settled it."""
    try:
        first, *_ = (view_of(out, label) / _MARK).read_text().splitlines()
        hash_, size = first.split("/")
        return Digest(hash_, int(size))
    except (OSError, ValueError):
        return None


def write_views(out: Path, settled: Iterable[Settled], link: Link) -> None:
    """Show the outputs and logs of each action; leave alone what already shows the same.

    ``link`` puts one blob of the store at a path. Raises ``OSError``.
    """
    for item in settled:
        if item.result is not None and item.key is not None:
            _write_view(view_of(out, item.label), item, item.key, link)


def _write_view(folder: Path, item: Settled, key: Digest, link: Link) -> None:
    assert item.result is not None
    files = [(file.path, file.digest) for file in item.result.files if is_inside(file.path)]
    logs = (("stdout.log", item.result.stdout), ("stderr.log", item.result.stderr))
    files += [(name, digest) for name, digest in logs if digest and digest.size]
    # The key alone would not do: a measurement that is taken again has other samples under it.
    shown = "".join(f"{digest} {path}\n" for path, digest in files)
    mark, text = folder / _MARK, f"{key}\n{Digest.of(shown.encode())}\n"
    with contextlib.suppress(OSError):
        if mark.read_text() == text:
            return
    _clear(folder)
    for path, digest in files:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        link(digest, target)
    atomic_write(mark, text.encode())


def _clear(folder: Path) -> None:
    """Remove an older view. Views of other targets may lie deeper and stay."""
    if not (folder / _MARK).is_file():
        return
    from shutil import rmtree

    rmtree(folder)
