"""The entries of wheels and zip files, tar files and Debian packages."""

from __future__ import annotations

import importlib
import lzma
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, cast

from kabuild.base.errors import Reason, ToolchainError
from kabuild.toolchain.unpack.ar import members
from kabuild.toolchain.unpack.entry import Entries, Entry, Kind, bad_archive

_BROKEN = (
    *(zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, EOFError),
    NotImplementedError,  # zipfile says so of a format or a compression that it lacks
)
_ENCRYPTED = 1
_LONGEST_LINK = 4096
"""Bytes of a link's target, more than Linux follows. Before they are read, they are packed."""

_MODES: Mapping[tuple[str, ...], Literal["r|", "r|gz", "r|xz", "r|bz2"]] = {
    (".tar",): "r|",
    (".tar.gz", ".tgz"): "r|gz",
    (".tar.xz", ".txz"): "r|xz",
    (".tar.bz2", ".tbz2"): "r|bz2",
}
_ZSTD = ("compression.zstd", "backports.zstd")


@contextmanager
def entries(archive: Path, name: str) -> Iterator[Entries]:
    """The entries of ``archive``; its ``name`` tells the format, and is used in messages.

    Raises DriftError(BAD_ARCHIVE) for a damaged one, also while entries are read.
    """
    try:
        if name.endswith((".whl", ".zip")):
            with zipfile.ZipFile(archive) as file:
                yield _zip(file, name)
        elif name.endswith(".deb"):
            with archive.open("rb") as package:
                data_name, data = _data_of(package, name)
                with _tar(data, data_name) as tar:
                    yield _tar_entries(tar)
        else:
            with archive.open("rb") as packed, _tar(packed, name) as tar:
                yield _tar_entries(tar)
    except _BROKEN as error:
        raise bad_archive(name, f"is damaged: {error}") from error


def _zip(file: zipfile.ZipFile, name: str) -> Entries:
    for info in file.infolist():
        mode = info.external_attr >> 16
        path = info.filename
        if info.flag_bits & _ENCRYPTED:
            raise bad_archive(name, f"holds {path!r}, which is encrypted")
        if info.is_dir():
            yield Entry(path.rstrip("/"), Kind.DIRECTORY)
        elif stat.S_ISLNK(mode):
            yield Entry(path, Kind.SYMLINK, target=_target(file, info, name))
        elif stat.S_IFMT(mode) in {0, stat.S_IFREG}:
            yield Entry(path, Kind.FILE, stat.S_IMODE(mode) or 0o644, open=partial(file.open, info))
        else:
            yield Entry(path, Kind.OTHER)


def _target(file: zipfile.ZipFile, info: zipfile.ZipInfo, name: str) -> str:
    """The target of a link, which a zip file holds as the content of a file."""
    with file.open(info) as content:
        target = content.read(_LONGEST_LINK + 1)
    try:
        if len(target) <= _LONGEST_LINK:
            return target.decode()
    except UnicodeDecodeError:
        pass
    raise bad_archive(name, f"holds the link {info.filename!r}, whose target is no path")


def _tar_entries(tar: tarfile.TarFile) -> Entries:
    for member in tar:
        path = member.name.removeprefix("./").rstrip("/")
        if member.isdir():
            if path not in {"", "."}:
                yield Entry(path, Kind.DIRECTORY)
        elif member.issym():
            yield Entry(path, Kind.SYMLINK, target=member.linkname)
        elif member.islnk():
            yield Entry(path, Kind.HARDLINK, target=member.linkname.removeprefix("./"))
        elif member.isreg():
            content = cast("IO[bytes]", tar.extractfile(member))
            yield Entry(path, Kind.FILE, member.mode, open=partial(_same, content))
        else:
            yield Entry(path, Kind.OTHER)


def _same(content: IO[bytes]) -> IO[bytes]:
    return content


def _tar(packed: IO[bytes], name: str) -> tarfile.TarFile:
    """A tar file as a stream, read once from front to back."""
    if name.endswith(".zst"):
        return tarfile.open(fileobj=_zstd(name).open(packed), mode="r|")
    for suffixes, mode in _MODES.items():
        if name.endswith(suffixes):
            return tarfile.open(fileobj=packed, mode=mode)
    raise bad_archive(name, "has no known format: .whl .zip .deb .tar .tar.{gz,xz,bz2,zst}")


def _zstd(name: str) -> Any:
    """Python's own module from 3.14 on, or its backport."""
    for module in _ZSTD:
        try:
            return importlib.import_module(module)
        except ImportError:
            continue
    raise ToolchainError(
        Reason.BAD_ARCHIVE,
        f"{name} is packed with zstd, which this Python cannot read",
        hint="pip install backports.zstd",
    )


def _data_of(package: IO[bytes], name: str) -> tuple[str, IO[bytes]]:
    """Name and content of the data archive of a Debian package."""
    for member, content in members(package, name):
        if member.startswith("data.tar"):
            return member, content
    raise bad_archive(name, "is not a Debian package: it has no data.tar")
