"""Files of a sandbox that are replaced while it is built, as by a package manager."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path

import pytest

from kabuild.sandbox import probe, rootfs
from kabuild.sandbox.namespaces import Bind, Limits, system_binds
from tests.kabuild.sandbox.boxes import call_contained, view

pytestmark = pytest.mark.skipif(probe() is not None, reason=f"no namespaces: {probe()}")
NONE = Limits()


def test_a_file_that_is_being_replaced_is_waited_for(tmp_path: Path) -> None:
    source = tmp_path / "replaced"
    writer = os.fork()
    if writer == 0:
        time.sleep(0.06)
        source.write_text("new")
        os._exit(0)
    seen = call_contained(
        lambda: Path("/replaced").read_text(),
        view=view(binds=(*system_binds(), Bind(str(source), "/replaced"))),
        limits=NONE,
    )
    os.waitpid(writer, 0)

    assert seen == "new"


@pytest.mark.parametrize("number", [errno.ENOTDIR, errno.EISDIR, errno.ESTALE, errno.EBUSY])
def test_a_file_that_is_something_else_for_a_moment_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The pause between two attempts mends it; so it does not matter how long that is."""
    source, mended = tmp_path / "cache", tmp_path / "mended"
    source.write_text("new")
    copy = rootfs._copy

    def copy_later(original: str, target: str) -> None:
        if not Path(f"{rootfs._OLD_ROOT}{mended}").exists():
            raise OSError(number, os.strerror(number))
        copy(original, target)

    monkeypatch.setattr(rootfs, "_COPIED", frozenset({str(source)}))
    monkeypatch.setattr(rootfs, "_copy", copy_later)
    monkeypatch.setattr(time, "sleep", lambda _: mended.touch())

    seen = call_contained(
        lambda: Path("/seen").read_text(),
        view=view(binds=(*system_binds(), Bind(str(source), "/seen"))),
        limits=NONE,
    )

    assert seen == "new"


@pytest.mark.parametrize("name", ["/etc/ld.so.cache", "/replaced"])
def test_a_replaced_file_is_seen_in_sandboxes_within(tmp_path: Path, name: str) -> None:
    """The outer sandbox shows the old file, which has no name any more, to those within it."""
    source = tmp_path / "old"
    source.write_text("old")
    outer = (*(bind for bind in view().binds if bind.target != name), Bind(str(source), name))

    def within() -> str:
        replacement.rename(source)  # a bind of the host's directory leads there
        inner = view(binds=(*view().binds, Bind(name, "/seen")))
        return call_contained(lambda: Path("/seen").read_text(), view=inner, limits=NONE)

    replacement = tmp_path / "new"
    replacement.write_text("new")
    shared = Bind(str(tmp_path), str(tmp_path), writable=True)
    seen = call_contained(
        within, view=view(binds=(*outer, shared)), limits=NONE, seccomp="nestable"
    )

    assert seen == "old"
    assert source.read_text() == "new"
