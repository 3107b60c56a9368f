"""Wheels, tar files and Debian packages with whatever content a test wants."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Member:
    """One member of a tar file."""

    path: str
    data: bytes = b""
    kind: bytes = tarfile.REGTYPE
    mode: int = 0o644
    target: str = ""


def wheel(files: Mapping[str, bytes], modes: Mapping[str, int] | None = None) -> bytes:
    """A zip file; ``modes`` has the Unix modes, with the type's bits, of some files."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            info = zipfile.ZipInfo(path)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = (modes or {}).get(path, 0o100644) << 16
            archive.writestr(info, data)
    return buffer.getvalue()


def tar(members: Iterable[Member], mode: Literal["w:", "w:gz", "w:xz"] = "w:gz") -> bytes:
    """A tar file."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for member in members:
            info = tarfile.TarInfo(member.path)
            info.type, info.mode, info.linkname = member.kind, member.mode, member.target
            info.size = len(member.data)
            archive.addfile(info, io.BytesIO(member.data))
    return buffer.getvalue()


def deb(members: Iterable[Member]) -> bytes:
    """A Debian package."""
    parts = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": tar([Member("./control", b"Package: x\n")], "w:xz"),
        "data.tar.xz": tar(members, "w:xz"),
    }
    data = b"!<arch>\n"
    for name, content in parts.items():
        data += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        data += content + b"\n" * (len(content) % 2)
    return data
