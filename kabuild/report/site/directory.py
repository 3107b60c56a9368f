"""The directory of a site: whole or not there, and never anybody else's files."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from kabuild.base.bounded_json import bounded_json
from kabuild.base.errors import Reason, UsageError
from kabuild.base.fs import remove_tree
from kabuild.base.reading import read_plain

MARK = "site.json"
"""Lists the files of a site, so that the next one knows what it may replace."""

SCHEMA = "kabuild/site/1"


def check_directory(directory: Path) -> None:
    """Raise UsageError if a site would replace other files; ``OSError``."""
    if not os.path.lexists(directory):
        if not directory.absolute().parent.is_dir():
            what = f"{directory.absolute().parent} is not a directory"
            raise UsageError(Reason.BAD_FLAG, f"--output: {what}")
        return
    if not directory.is_dir():
        raise UsageError(Reason.BAD_FLAG, f"--output: '{directory}' is not a directory")
    own = _listed(directory)
    strange = next((path for path in _files(directory) if path not in own), None)
    if strange is not None:  # the first is enough: it may be the directory of a whole machine
        what = f"--output: '{directory}' has files that 'kabuild site' did not write"
        raise UsageError(Reason.BAD_FLAG, f"{what}: {strange}", hint="name an empty directory")


def write_site(directory: Path, files: Iterable[tuple[str, bytes | Path]]) -> None:
    """Put ``files`` into ``directory``, and remove what an older site had there.

    A file is its content, or where to copy it from. The site is made beside it and put there by a
    rename. Raises UsageError as ``check_directory``, and ``OSError``.
    """
    check_directory(directory)
    real = Path(os.path.realpath(directory))
    work = real.with_name(f".{real.name[:50]}.{secrets.token_hex(6)}.tmp")
    try:
        work.mkdir()
        made = [_write(work, path, content) for path, content in files]
        _write(work, MARK, _mark(made))
        _put(work, real)
    finally:
        remove_tree(work)


def _put(work: Path, real: Path) -> None:
    """Swap directories; what was at ``real`` is at ``work`` then, to be removed."""
    if not real.exists():
        work.rename(real)
        return
    old = work.with_name(f"{work.name}.old")
    work.chmod(real.stat().st_mode & 0o7777)
    real.rename(old)
    try:
        work.rename(real)
    except OSError:
        old.rename(real)
        raise
    old.rename(work)


def _write(work: Path, path: str, content: bytes | Path) -> str:
    target = work / path
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, Path):
        shutil.copyfile(content, target)
    else:
        target.write_bytes(content)
    return path


def _mark(files: Iterable[str]) -> bytes:
    told: Mapping[str, object] = {"schema": SCHEMA, "files": sorted([*files, MARK])}
    return (json.dumps(told, indent=1) + "\n").encode()


def _listed(directory: Path) -> set[str]:
    """The files of the site that is there; none if there is no site."""
    try:
        told = bounded_json(read_plain(directory / MARK))
        return set(map(str, told["files"])) if told["schema"] == SCHEMA else set()
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return set()


def _files(directory: Path) -> Iterator[str]:
    """All that is in a directory but directories, and empty directories."""
    for folder, names, files in os.walk(directory):
        links = [name for name in names if Path(folder, name).is_symlink()]
        for name in [*files, *links]:
            yield Path(folder, name).relative_to(directory).as_posix()
