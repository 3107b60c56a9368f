"""The verdict of the compile gates of HIP, whatever they compile for."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest
from compile_gate import Build, Compiled, judge
from faults import MOST_TEXT, SourceFault, ToolchainFault
from terms import reading

REFUSED = "// double.hip was not handed in: it is a symbolic link\n"


def _judged(text: str) -> tuple[bool, dict[str, Any]]:
    """Whether it was built, and the verdict."""
    Path("double.hip").write_text(text)
    built = []

    def build(_source: Path) -> Compiled:
        built.append(True)
        return Compiled("fine", {})

    assert judge(Path("double.hip"), build) == 0
    return bool(built), json.loads(Path("out/verdict.json").read_bytes())


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_what_stands_for_a_refused_file_is_not_built_and_says_why() -> None:
    built, verdict = _judged(REFUSED)

    assert not built
    assert (verdict["verdict"], verdict["reason"]) == ("FAIL", "NOT_HANDED_IN")
    assert verdict["summary"] == "the agent's double.hip was refused: it is a symbolic link"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "int x;\n",
        f"{REFUSED}int x;\n",
        REFUSED[:-1],
        REFUSED.replace("double", "other"),
        f"{REFUSED[:-1]}{'x' * 1000}\n",
    ],
)
def test_any_other_file_is_built(text: str) -> None:
    built, verdict = _judged(text)

    assert built
    assert verdict["verdict"] == "PASS"


def test_only_the_source_is_blamed_for_what_is_its_own() -> None:
    Path("double.hip").write_text("int x;")

    def wrong(_source: Path) -> Compiled:
        raise SourceFault("double.hip:1:7: error: no")

    def broken(_source: Path) -> Compiled:
        raise ToolchainFault("the linker is gone")

    assert judge(Path("double.hip"), wrong) == 0
    assert json.loads(Path("out/verdict.json").read_bytes())["reason"] == "COMPILE_ERROR"
    assert judge(Path("double.hip"), broken) == 3
    assert judge(Path("nothing.hip"), broken) == 3


ENTRY = "run"


def _breaks(error: Exception) -> Build:
    """A build that the source breaks; a source with nothing but the entry is sound."""

    def build(source: Path) -> Compiled:
        if source.read_text() == f'extern "C" void {ENTRY}() {{}}\n':
            Path("out").mkdir(exist_ok=True)
            Path("out/kernel.so").touch()
            return Compiled("fine", {})
        raise error

    return build


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (RecursionError("too deep"), "RecursionError: too deep"),
        (IndexError(), "IndexError"),
        (MemoryError(), "MemoryError"),
        (ValueError("4300 digits"), "ValueError: 4300 digits"),
        (OSError(errno.ENAMETOOLONG, "File name too long"), "OSError: File name too long"),
    ],
    ids=repr,
)
def test_what_a_source_breaks_is_its_own_fault(error: Exception, said: str) -> None:
    Path("double.hip").write_text("int x;")

    assert judge(Path("double.hip"), _breaks(error), entries=[ENTRY]) == 0

    verdict = json.loads(Path("out/verdict.json").read_bytes())
    assert (verdict["verdict"], verdict["reason"]) == ("FAIL", "COMPILE_ERROR")
    assert verdict["summary"] == f"double.hip:1:1: error: cannot be read: {said}"
    assert not Path("out/kernel.so").exists()


@pytest.mark.parametrize(
    "error", [RecursionError(), OSError(errno.ENAMETOOLONG, "File name too long")], ids=repr
)
def test_what_any_source_breaks_is_the_machine_s(error: Exception) -> None:
    Path("double.hip").write_text("int x;")

    def build(_source: Path) -> Compiled:
        raise error

    assert judge(Path("double.hip"), build, entries=[ENTRY]) == 3
    assert not Path("out/verdict.json").exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EMFILE, errno.EACCES])
def test_what_the_system_lacks_is_never_the_source_s(number: int) -> None:
    Path("double.hip").write_text("int x;")

    assert judge(Path("double.hip"), _breaks(OSError(number, "no")), entries=[ENTRY]) == 3


def test_a_source_that_is_read_for_too_long_is_at_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("double.hip").write_text("int x;")
    monkeypatch.setattr(reading, "SECONDS", 0.2)
    sound = _breaks(RecursionError())

    def build(source: Path) -> Compiled:
        while source == Path("double.hip"):
            pass
        return sound(source)

    assert judge(Path("double.hip"), build, entries=[ENTRY]) == 0
    verdict = json.loads(Path("out/verdict.json").read_bytes())
    assert verdict["reason"] == "COMPILE_ERROR"
    assert "cannot be read: reading it takes more than 0.2 s" in verdict["summary"]


def test_of_many_words_the_first_are_kept(capfd: pytest.CaptureFixture[str]) -> None:
    Path("double.hip").write_text("int x;")

    def build(_source: Path) -> Compiled:
        raise SourceFault(f"double.hip:1:7: error: no {'x' * (1 << 22)}")

    assert judge(Path("double.hip"), build) == 0

    verdict = json.loads(Path("out/verdict.json").read_bytes())
    assert verdict["summary"].startswith("double.hip:1:7: error: no x")
    assert len(verdict["summary"]) < 3000
    assert verdict["detail"].endswith("is left out")
    assert len(verdict["detail"]) < MOST_TEXT + 100
    assert len(capfd.readouterr().err) < MOST_TEXT + 100
