"""The verdict of the compile gates of HIP, whatever they compile for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from compile_gate import Compiled, judge
from faults import SourceFault, ToolchainFault

REFUSED = "// double.hip was not handed in: it is a symbolic link\n"


def _judged(text: str) -> tuple[bool, dict[str, Any]]:
    """Whether it was built, and the verdict."""
    Path("double.hip").write_text(text)
    built = []

    def build() -> Compiled:
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

    def wrong() -> Compiled:
        raise SourceFault("double.hip:1:7: error: no")

    def broken() -> Compiled:
        raise ToolchainFault("the linker is gone")

    assert judge(Path("double.hip"), wrong) == 0
    assert json.loads(Path("out/verdict.json").read_bytes())["reason"] == "COMPILE_ERROR"
    assert judge(Path("double.hip"), broken) == 3
    assert judge(Path("nothing.hip"), broken) == 3
