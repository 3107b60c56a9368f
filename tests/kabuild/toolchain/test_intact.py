"""Files of installed distributions that were edited after they were installed."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kabuild.base.errors import DriftError, Reason
from kabuild.model.action import Toolchain
from kabuild.model.digest import Digest
from kabuild.toolchain.distributions import installed
from kabuild.toolchain.fingerprint import (
    distribution_fingerprint,
    environment_fingerprint,
    hash_file,
    hash_record,
)
from kabuild.toolchain.intact import InstalledFiles

Install = Callable[..., Path]
KINDS = ("environment", "distribution")


class Reader:
    """Reads files, and remembers which."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def __call__(self, path: Path) -> Digest:
        self.read.append(path.name)
        return hash_file(path)


def recorded(name: str, text: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(text)}\n"


def toolchain(site: Path, kind: str = "environment") -> Toolchain:
    found = installed([str(site)])["torch"]
    fingerprint = (
        environment_fingerprint([found], hash_record)
        if kind == "environment"
        else distribution_fingerprint(found, hash_record)
    )
    return Toolchain("python", "python", fingerprint, str(site), (str(site),))


@pytest.fixture
def torch(site: Path, install: Install) -> Path:
    """The directory of an installed package with two files, whose RECORD came last."""
    package = site / "torch"
    package.mkdir()
    (package / "a.py").write_bytes(b"one")
    (package / "b,c.py").write_bytes(b"two")
    time.sleep(0.02)  # a tick of the file system
    files = recorded("torch/a.py", b"one") + recorded('"torch/b,c.py"', b"two")
    others = "../../bin/x,sha256=script,1\ntorch/__pycache__/a.pyc,sha256=made,1\n\ntorch/n,,\n"
    install("torch", "2.0", record=files + others)
    time.sleep(0.02)
    return package


def test_files_that_nobody_touched_are_not_read(torch: Path, site: Path) -> None:
    reader = Reader()

    InstalledFiles(reader)(toolchain(site))

    assert reader.read == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_edited_file_is_drift_and_is_named(torch: Path, site: Path, kind: str) -> None:
    (torch / "a.py").write_bytes(b"ONE")
    intact, reader = toolchain(site, kind), Reader()
    look = InstalledFiles(reader)

    for _ in range(2):
        with pytest.raises(DriftError, match="differs from what was installed") as caught:
            look(intact)

    assert caught.value.reason is Reason.TOOLCHAIN_DRIFT
    assert caught.value.hint.splitlines()[0] == "torch/a.py: changed"
    assert "--force-reinstall --no-deps torch==2.0" in caught.value.hint
    assert reader.read == ["a.py"]


def test_images_may_leave_files_out(torch: Path, site: Path) -> None:
    (torch / "b,c.py").unlink()

    InstalledFiles(hash_file)(toolchain(site))


def test_a_copy_with_the_same_content_is_whole(torch: Path, site: Path) -> None:
    (torch / "a.py").write_bytes(b"one")
    reader = Reader()

    InstalledFiles(reader)(toolchain(site))

    assert reader.read == ["a.py"]


def test_other_toolchains_are_not_looked_at(site: Path) -> None:
    for fingerprint in (b'{"kind":"local"}\n', b"{}\n", b"[]\n"):
        InstalledFiles(hash_file)(Toolchain("t", "r", fingerprint, "/", ("/",)))
