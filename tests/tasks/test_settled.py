"""Which modules of settled parts a run leaves out, and when a part is settled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.testkit import settled
from tests.testkit.kept import REPOSITORY
from tests.testkit.settled import PARTS, SHARE, Part, digest, left_out, modules_of

OTHER = "tests/tasks/test_declarations.py"
PART = Part(("tests/test_*.py",), ("rules", "tools/one.py"))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with the files of ``PART``."""
    for name in ("tests/test_a.py", "rules/deep/rule.py", "tools/one.py", "tools/two.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


@pytest.mark.parametrize("name", ["tests/test_a.py", "rules/deep/rule.py", "tools/one.py"])
def test_any_change_of_a_file_unsettles_its_part(tree: Path, name: str) -> None:
    before = digest(PART, tree)
    (tree / name).write_text("changed")

    assert digest(PART, tree) != before


@pytest.mark.parametrize("name", ["tests/test_b.py", "rules/new.py"])
def test_a_new_file_unsettles_its_part(tree: Path, name: str) -> None:
    before = digest(PART, tree)
    (tree / name).write_text("new")

    assert digest(PART, tree) != before


def test_other_files_pages_and_bytecode_do_not_matter(tree: Path) -> None:
    before = digest(PART, tree)
    (tree / "tools/two.py").write_text("changed")
    (tree / "rules/README.md").write_text("new")
    (tree / "rules/__pycache__").mkdir()
    (tree / "rules/__pycache__/rule.pyc").write_text("compiled")
    (tree / "rules/deep/.ruff_cache/0.17").mkdir(parents=True)
    (tree / "rules/deep/.ruff_cache/0.17/1234").write_text("of one machine")

    assert digest(PART, tree) == before


def test_every_part_has_modules_and_files() -> None:
    for name, part in PARTS.items():
        assert modules_of(name), name
        for glob in part.about:
            assert list(REPOSITORY.glob(glob)), f"{name}: {glob}"


def test_a_page_matters_where_it_is_named(tree: Path) -> None:
    (tree / "rules/README.md").write_text("a page")
    named = Part(PART.modules, ("rules/README.md",))
    before = digest(named, tree)
    (tree / "rules/README.md").write_text("changed")

    assert digest(named, tree) != before


def test_each_module_belongs_to_one_part_at_most() -> None:
    named = [module for name in PARTS for module in modules_of(name)]

    assert len(named) == len(set(named))
    assert "tests/cli/test_import.py" in modules_of("imports")
    assert "tests/cli/test_docs.py" not in named


def test_one_module_in_five_runs_and_each_has_its_turn() -> None:
    modules = {module for name in PARTS for module in modules_of(name)}
    run = [modules - left_out(PARTS, f"commit {number}") for number in range(100)]

    assert {len(one) for one in run} <= {len(modules) // SHARE, -(-len(modules) // SHARE)}
    assert set.union(*run) == modules


def test_what_is_not_settled_runs() -> None:
    others = {module for name in PARTS if name != "imports" for module in modules_of(name)}

    assert left_out([], "any") == set()
    assert left_out(PARTS.keys() - {"imports"}, "any") <= others


def test_a_part_is_settled_once_all_its_modules_passed(tmp_path: Path) -> None:
    modules = modules_of("imports")

    settled.record_passed(modules[1:], tmp_path)
    assert not settled.is_settled("imports", tmp_path)

    settled.record_passed(modules, tmp_path)
    assert settled.is_settled("imports", tmp_path)
    assert not settled.is_settled("models", tmp_path)

    (tmp_path / "imports").write_text(f"{'0' * 64}\n")
    assert not settled.is_settled("imports", tmp_path)


@pytest.mark.parametrize(("suite", "accept"), [("all", ""), ("", ""), ("turns", "1")])
def test_only_make_test_leaves_anything_out(
    monkeypatch: pytest.MonkeyPatch, suite: str, accept: str
) -> None:
    monkeypatch.setattr(settled, "is_settled", lambda _: True)
    monkeypatch.setenv("KABUILD_TEST_SUITE", "turns")
    monkeypatch.delenv("KABUILD_TEST_ACCEPT", raising=False)
    assert settled.not_in_turn()

    monkeypatch.setenv("KABUILD_TEST_SUITE", suite)
    monkeypatch.setenv("KABUILD_TEST_ACCEPT", accept)
    assert not settled.not_in_turn()


@pytest.mark.parametrize(
    ("waiting", "selected", "status"),
    [
        ({OTHER}, "", pytest.ExitCode.OK),
        (set(), "no_such_test", pytest.ExitCode.NO_TESTS_COLLECTED),
    ],
)
def test_a_run_whose_modules_are_not_in_turn_succeeds(
    waiting: set[str], selected: str, status: int
) -> None:
    """By pytest itself, which calls a run that has selected no test a failure."""
    run = f"""import sys, pytest
from tests.testkit import settled
settled.not_in_turn = lambda: {waiting}
sys.exit(pytest.main(["-p", "no:cacheprovider", "-k", "{selected}", "{OTHER}"]))"""
    done = subprocess.run(
        [sys.executable, "-c", run], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )

    assert done.returncode == status, done.stdout + done.stderr
    assert "deselected" in done.stdout
