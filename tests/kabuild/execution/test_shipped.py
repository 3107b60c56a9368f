"""A zygote compiles files that ship with kabuild, and never one of anybody else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kabuild.execution import Inputs, prepare
from kabuild.execution.prepared import Prepared
from kabuild.execution.shipped import shipped_sources
from kabuild.model.action import Artifact, Literal, Source
from kabuild.model.digest import Digest
from tests.testkit.actions import gate
from tests.testkit.index import NoIndex

ROOTS = ("builtin", "kabuild", "workspace", "@other")


@pytest.fixture
def roots(tmp_path: Path) -> dict[str, Path]:
    """Each with the files ``judge/spec.py``, ``judge/notes.txt`` and ``one.py``."""
    found = {root: tmp_path / root for root in ROOTS}
    for root, directory in found.items():
        (directory / "judge").mkdir(parents=True)
        (directory / "judge" / "spec.py").write_text(f"WHOSE = {root!r}\n")
        (directory / "judge" / "notes.txt").write_text("notes\n")
        (directory / "one.py").write_text("ONE = 1\n")
    return found


def prepared(roots: dict[str, Path], inputs: dict[str, Artifact]) -> Prepared:
    action = gate("k.perf", "python", "tools/gate.py", inputs=inputs)
    return prepare(action, Inputs(roots, NoIndex()).root(action, {}))


def sha256(path: Path) -> str:
    return Digest.of(path.read_bytes()).hash


def test_python_files_that_ship_are_named_with_their_content(roots: dict[str, Path]) -> None:
    found = shipped_sources(
        prepared(
            roots,
            {
                "tools/judge": Source("judge", "builtin"),
                "tools/one.py": Source("one.py", "kabuild"),
            },
        )
    )

    assert found == {
        "tools/judge/spec.py": sha256(roots["builtin"] / "judge/spec.py"),
        "tools/one.py": sha256(roots["kabuild"] / "one.py"),
    }


@pytest.mark.parametrize(
    "item",
    [
        Source("one.py"),
        Source("one.py", "@other"),
        Literal(b"ONE = 1\n"),
    ],
    ids=["workspace", "repository", "literal"],
)
def test_others_are_not_even_among_them(roots: dict[str, Path], item: Artifact) -> None:
    """Neither beside them, nor in a directory that has both; not even with the same content."""
    ours = {"tools/judge": Source("judge", "builtin")}
    found = shipped_sources(
        prepared(roots, {**ours, "tools/one.py": item, "tools/judge/one.py": item})
    )

    assert set(found) == {"tools/judge/spec.py"}


def test_a_file_of_the_user_is_none_of_them(roots: dict[str, Path]) -> None:
    own = roots["builtin"] / "one.py"
    assert shipped_sources(prepared(roots, {"tools/one.py": Source(str(own), "user")})) == {}


def test_an_action_of_a_bundle_has_none(roots: dict[str, Path]) -> None:
    """It has an input root without a word on where its files come from."""
    whole = prepared(roots, {"tools/judge": Source("judge", "builtin")})
    restored = replace(whole.action, inputs=())

    assert shipped_sources(prepare(restored, whole.root)) == {}
