"""The spawner's side of a zygote."""

from __future__ import annotations

import sys
import tempfile

import pytest

from kabuild.sandbox.zygote_process import PreloadRefused, ZygoteProcess


def test_nothing_is_written_to_the_directory_for_temporary_files(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Python tries that directory out with a file, which a kill at that moment leaves behind."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    zygote = ZygoteProcess(sys.executable, ["no_such_module"], {})
    try:
        with pytest.raises(PreloadRefused, match="no_such_module"):
            zygote.start()
    finally:
        zygote.close()

    assert tempfile.tempdir is None
