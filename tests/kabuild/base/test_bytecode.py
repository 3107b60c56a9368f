"""Rules and drivers are what their files say now, whatever was compiled of them before."""

from __future__ import annotations

import importlib
import itertools
import os
import sys
from pathlib import Path

import pytest

from kabuild.base.bytecode import own_package

SERIAL = itertools.count()
SECOND = 1_700_000_000 * 10**9  # ns


def value_of(folder: Path) -> int:
    package = own_package(f"test_{next(SERIAL)}", "A test's.", [str(folder)])
    importlib.invalidate_caches()
    value: int = importlib.import_module(f"{package.__name__}.below.rule").VALUE
    return value


def test_an_edit_within_a_second_and_of_equal_size_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (tmp_path / "below").mkdir()
    rule = tmp_path / "below/rule.py"
    for value, moment in ((1, SECOND), (2, SECOND + 1000)):
        rule.write_text(f"VALUE = {value}\n")
        os.utime(rule, ns=(moment, moment))
        assert value_of(tmp_path) == value
    (compiled,) = (tmp_path / "below/__pycache__").iterdir()

    before = compiled.stat().st_mtime_ns
    assert value_of(tmp_path) == 2
    assert compiled.stat().st_mtime_ns == before, "nothing is compiled twice"
