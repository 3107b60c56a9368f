"""Rules are found by kind, and only those in use are imported."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kabuild.base.errors import LoadError, Position, Reason
from kabuild.loading.rule_index import RuleIndex

if TYPE_CHECKING:
    from tests.kabuild.conftest import Project

RULE = """\
from kabuild.rule import Rule
RULE = Rule(kind="{kind}", doc="{doc}", implement=print)
"""


@pytest.fixture
def index(project: Project) -> RuleIndex:
    return RuleIndex((project.root / "rules", project.builtin / "rules"))


def test_the_workspaces_rules_come_first(project: Project, index: RuleIndex) -> None:
    project.write("rules/mine/rule.py", RULE.format(kind="mine", doc="workspace"))
    project.write("builtin/rules/mine/rule.py", RULE.format(kind="mine", doc="builtin"))
    project.write("builtin/rules/yours/rule.py", RULE.format(kind="yours", doc="builtin"))
    assert index.rule("mine").doc == "workspace"
    assert index.rule("yours").doc == "builtin"
    assert index.kinds() == ("group", "mine", "task", "toolchain", "yours")


def test_only_the_rule_in_use_is_imported(project: Project, index: RuleIndex) -> None:
    project.write("rules/broken/rule.py", "raise RuntimeError('imported')")
    assert index.rule("group").kind == "group"
    assert "broken" in index.kinds()


def test_rules_import_each_other_across_both_roots(project: Project, index: RuleIndex) -> None:
    project.write("builtin/rules/common/words.py", "WORD = 'shared'")
    project.write("builtin/rules/common/rule.py", RULE.format(kind="common", doc="x"))
    project.write(
        "rules/mine/rule.py",
        """\
        from kabuild.rule import Rule
        from ..common.words import WORD
        RULE = Rule(kind="mine", doc=WORD, implement=print)
        """,
    )
    assert index.rule("mine").doc == "shared"


def test_two_workspaces_do_not_mix(tmp_path: Path) -> None:
    for name in ("one", "two"):
        for file, text in (("rule", f"from .doc import DOC\n{RULE}"), ("doc", f"DOC = '{name}'")):
            path = tmp_path / name / "mine" / f"{file}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text.format(kind="mine", doc=name))
    one, two = (RuleIndex((tmp_path / name,)) for name in ("one", "two"))
    assert (one.rule("mine").doc, two.rule("mine").doc) == ("one", "two")
    assert one.rule("mine") is one.rule("mine")


def test_several_kinds_in_one_directory_are_announced(project: Project, index: RuleIndex) -> None:
    project.write("rules/pair/kinds.txt", "left\nright\n")
    project.write(
        "rules/pair/rule.py",
        """\
        from kabuild.rule import Rule
        RULES = tuple(Rule(kind=k, doc="x", implement=print) for k in ("left", "right"))
        """,
    )
    assert index.rule("right").kind == "right"
    assert {"left", "right"} <= set(index.kinds())
    assert index.file("left") == project.root / "rules/pair/rule.py"


def test_the_built_in_kind_has_no_file(index: RuleIndex) -> None:
    assert index.rule("toolchain").kind == "toolchain"
    assert index.file("toolchain") is None
    assert index.file("nothing") is None


@pytest.mark.parametrize(
    ("kind", "hint"),
    [("taks", "did you mean 'task'?"), ("xyz", "rules: group, task, toolchain"), ("a b", "rules:")],
)
def test_unknown_rules(index: RuleIndex, kind: str, hint: str) -> None:
    with pytest.raises(LoadError) as caught:
        index.rule(kind, Position("a/BUILD.toml", 3))
    assert caught.value.reason is Reason.UNKNOWN_RULE
    assert caught.value.position == Position("a/BUILD.toml", 3)
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("x = 1\nraise RuntimeError('boom')", 2, "RuntimeError: boom"),
        ("raise SystemExit(0)", 1, "SystemExit: 0"),
        ("class X(Exception):\n  def __str__(self): return 1\nraise X", 3, "fails: X"),
        ("def f(:\n", 1, "SyntaxError"),
        ("import nothing_of_that_name", 1, "ModuleNotFoundError"),
        ("from ..task import nothing", 1, "ImportError"),
        ("x = 1", 0, "defines no RULE"),
        ("RULE = 3", 0, "RULE is a int, expected a Rule"),
        (RULE.format(kind="other", doc="x"), 0, "kind 'other' is not announced"),
        ("from kabuild.rule import Rule\nRULES = ()", 0, "defines no RULE"),
    ],
)
def test_broken_rule_files(
    project: Project, index: RuleIndex, text: str, line: int, message: str
) -> None:
    file = project.write("rules/mine/rule.py", text)
    with pytest.raises(LoadError) as caught:
        index.rule("mine")
    assert caught.value.reason is Reason.BAD_RULE
    assert message in caught.value.message
    assert caught.value.position == Position(str(file), line)


INTERRUPTED = """
class Name:
    def __set_name__(self, *_):
        raise KeyboardInterrupt

class Named:
    name = Name()
"""


def test_an_interrupted_import_is_not_taken_for_a_broken_rule(
    project: Project, index: RuleIndex
) -> None:
    """Python may wrap the interrupt in another exception."""
    roots = (project.root / "rules",)
    others = RuleIndex(roots).gates().all
    project.write("rules/mine/rule.py", INTERRUPTED)
    with pytest.raises((LoadError, KeyboardInterrupt)):
        index.gates()
    project.write("rules/mine/rule.py", "1 / 0")
    assert RuleIndex(roots).gates().all == others


def test_the_line_is_that_of_the_helper_which_failed(project: Project, index: RuleIndex) -> None:
    helper = project.write("rules/mine/helper.py", "\n\n1 / 0\n")
    project.write("rules/mine/rule.py", "from .helper import x")
    with pytest.raises(LoadError, match="ZeroDivisionError") as caught:
        index.rule("mine")
    assert caught.value.position == Position(str(helper), 3)


def test_nothing_is_imported_until_a_rule_is_needed(project: Project) -> None:
    before = {name for name in sys.modules if name.startswith("kabuild_rules")}
    index = RuleIndex((project.root / "rules",))
    index.kinds()
    assert {name for name in sys.modules if name.startswith("kabuild_rules")} == before


@pytest.mark.parametrize("kind", ["n" * 61, "n" * 300, "é" * 200])
def test_a_name_that_no_directory_can_have_is_unknown(index: RuleIndex, kind: str) -> None:
    with pytest.raises(LoadError) as caught:
        index.rule(kind, Position("a/BUILD.toml", 1))
    assert caught.value.reason is Reason.UNKNOWN_RULE
