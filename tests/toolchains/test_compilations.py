"""What is kept of compilations is for equal ones only."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.testkit import compilations
from tests.testkit.compilations import Completed, compile_once

COMPILER = """\
import pathlib, sys
text = pathlib.Path(sys.argv[1]).read_text()
print(sys.argv[1] + ":1: read")
if "wrong" in text:
    sys.exit(sys.argv[1] + ":1: wrong")
pathlib.Path(sys.argv[2]).write_text(text.upper())
"""


@pytest.fixture
def ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Sequence[str]]:
    """The commands that have run, nothing being kept before."""
    commands: list[Sequence[str]] = []

    def run(command: Sequence[str]) -> Completed:
        commands.append(command)
        return subprocess.run(command, capture_output=True, text=True, check=False)

    monkeypatch.setattr(compilations, "_run", run)
    monkeypatch.setattr(compilations, "kept", lambda name: tmp_path)
    return commands


def _compile(directory: Path, text: str, *options: str) -> tuple[Completed, Path]:
    directory.mkdir(exist_ok=True)
    source, output = directory / "k.hip", directory / "k.so"
    source.write_text(text)
    command = [sys.executable, "-c", COMPILER, str(source), str(output), *options]
    return compile_once(command, source, output), output


def test_an_equal_compilation_is_recalled_where_it_is_now(
    ran: list[Sequence[str]], tmp_path: Path
) -> None:
    for name in ("first", "second"):
        done, output = _compile(tmp_path / name, "fine")

        assert (done.returncode, done.stdout) == (0, f"{tmp_path / name / 'k.hip'}:1: read\n")
        assert output.read_text() == "FINE"
    assert len(ran) == 1


def test_so_is_a_refusal(ran: list[Sequence[str]], tmp_path: Path) -> None:
    for name in ("first", "second"):
        done, output = _compile(tmp_path / name, "wrong")

        assert (done.returncode, done.stderr) == (1, f"{tmp_path / name / 'k.hip'}:1: wrong\n")
        assert not output.exists()
    assert len(ran) == 1


def test_whatever_differs_is_compiled(ran: list[Sequence[str]], tmp_path: Path) -> None:
    _compile(tmp_path / "a", "fine")
    _compile(tmp_path / "a", "other")
    _compile(tmp_path / "a", "fine", "--option")
    (tmp_path / "a" / "own.h").write_text("1")
    _compile(tmp_path / "a", "fine")
    (tmp_path / "a" / "own.h").write_text("2")
    _compile(tmp_path / "a", "fine")

    assert len(ran) == 5


def test_what_depends_on_other_temporary_files_is_not_kept(
    ran: list[Sequence[str]], tmp_path: Path
) -> None:
    for _ in range(2):
        _compile(tmp_path / "a", "fine", f"--include={tmp_path}/include")

    assert len(ran) == 2
