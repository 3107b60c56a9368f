"""Downloads one file over an unreliable network: resumed, limited, and verified."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kabuild.base.errors import DriftError, Reason, ToolchainError
from kabuild.toolchain.fetch.http import FAILURES, Http, shown, why
from kabuild.toolchain.lock import LockedFile

ATTEMPTS = 4
"""Attempts per URL. Each resumes where the last one stopped."""

_CHUNK = 1 << 18
_BROKEN = (*FAILURES, http.client.HTTPException)

Advanced = Callable[[int], None]


def download(
    http: Http, urls: Iterable[str], file: LockedFile, target: Path, advanced: Advanced
) -> None:
    """Download ``file`` into ``target``, which may hold a part of it already.

    Returns when ``target`` has the pinned content. Raises DriftError for another content, which is
    removed, and ToolchainError(FETCH_FAILED) if it cannot be downloaded.
    """
    problems: list[str] = []
    for url in urls:
        for _ in range(ATTEMPTS):
            try:
                _continue(http, url, file, target, advanced)
            except _BROKEN as error:
                problems.append(f"{shown(url)}: {why(error)}")
                if isinstance(error, urllib.error.HTTPError) and error.code < 500:
                    break
                continue
            if target.stat().st_size >= file.size:
                _verify(file, target)
                return
            problems.append(
                f"{shown(url)}: ended after {target.stat().st_size} of {file.size} bytes"
            )
    raise ToolchainError(
        Reason.FETCH_FAILED,
        f"{file.base} cannot be downloaded",
        hint="\n".join(dict.fromkeys(problems)) or "no configured index or mirror has it",
    )


def measure(http: Http, url: str, sha256: str) -> tuple[str, int]:
    """Digest and size of the file at ``url``; it is read in full if the headers do not suffice.

    ``sha256`` is its digest if known, else "". Raises ``FAILURES``.
    """
    if sha256:
        with http.open(url, method="HEAD") as response:
            length = response.headers.get("Content-Length")
        if length is not None:
            return sha256, int(length)
    hash_, size = hashlib.sha256(), 0
    with http.open(url) as response:
        while chunk := response.read(_CHUNK):
            hash_.update(chunk)
            size += len(chunk)
    return hash_.hexdigest(), size


def _continue(http: Http, url: str, file: LockedFile, target: Path, advanced: Advanced) -> None:
    """Append the missing bytes; a server that cannot resume sends everything again.

    At most one byte more than the pinned size is read: enough to detect a difference.
    """
    done = target.stat().st_size if target.exists() else 0
    if done >= file.size:
        return
    headers = {"Range": f"bytes={done}-"} if done else {}
    with http.open(url, **headers) as response:
        resumed = done and _starts_at(response, done)
        if done and not resumed:
            advanced(-done)
            done = 0
        with target.open("ab" if resumed else "wb") as out:
            while done <= file.size and (chunk := response.read(min(_CHUNK, file.size + 1 - done))):
                out.write(chunk)
                done += len(chunk)
                advanced(len(chunk))


def _starts_at(response: Any, done: int) -> bool:
    span = response.headers.get("Content-Range", "")
    return getattr(response, "status", None) == 206 and span.startswith(f"bytes {done}-")


def _verify(file: LockedFile, target: Path) -> None:
    with target.open("rb") as data:
        found = hashlib.file_digest(data, "sha256").hexdigest()
        size = data.tell()
    if (found, size) == (file.sha256, file.size):
        return
    target.unlink()
    got = f"sha256:{found}" if size == file.size else f"more than {file.size} bytes"
    raise DriftError(
        Reason.TOOLCHAIN_DRIFT,
        f"digest mismatch for {file.base}",
        hint=f"specified: sha256:{file.sha256}\ngot:       {got}\nnothing was unpacked",
    )
