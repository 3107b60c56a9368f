"""Gates on request: judged where they are named, and by no wildcard."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from kabuild.analysis import Analysis
from kabuild.analysis.query import query
from kabuild.base.errors import LoadError
from kabuild.model.gate import Gate, When
from kabuild.model.label import Label

if TYPE_CHECKING:
    from tests.kabuild.conftest import Project

RULE = """
from kabuild.rule import Context, Gate, Rule, When

def implement(ctx: Context) -> None:
    for part in ("compile", "admission"):
        ctx.GATE(part, argv=(part,), inputs={}, MORE mnemonic=part)

RULE = Rule(kind="vetted", doc="x", implement=implement,
            gates=(Gate("compile"), Gate("admission", When.ON_REQUEST)))
"""
TASK = Label("a", "t")
COMPILE = (Gate("compile"), TASK.sub("compile"))
ADMISSION = (Gate("admission", When.ON_REQUEST), TASK.sub("admission"))


@pytest.fixture
def vetted(project: Project) -> Project:
    project.write("rules/vetted/rule.py", RULE.replace("GATE", "gate").replace("MORE", ""))
    project.write("a/BUILD.toml", '[[vetted]]\nname = "t"\n')
    return project


@pytest.mark.usefixtures("vetted")
def test_a_target_stands_for_a_gate_on_request_only_where_it_is_named(
    analyse: Callable[..., Analysis],
) -> None:
    analysis = analyse("//a:t")

    assert analysis.gates(TASK) == (COMPILE,)
    assert analysis.gates(TASK, ("compile",)) == (COMPILE,)
    assert analysis.gates(TASK, ("compile", "admission")) == (COMPILE, ADMISSION)


@pytest.mark.usefixtures("vetted")
def test_its_own_label_stands_for_it(analyse: Callable[..., Analysis]) -> None:
    assert analyse("//a:t.admission").gates(ADMISSION[1]) == (ADMISSION,)
    assert analyse("//a:t.compile").gates(COMPILE[1], ("admission",)) == ()


def test_queries_say_so_too(vetted: Project) -> None:
    def found(expression: str) -> list[str]:
        return [str(node.label) for node in query(vetted.loader(), expression)]

    assert found("tests(//a:t)") == [str(COMPILE[1])]
    assert found("tests(//a:t.admission)") == [str(ADMISSION[1])]
    assert found("kind(gate, //a:t.admission)") == [str(ADMISSION[1])]


def test_a_gate_on_request_has_to_be_a_gate(
    project: Project, analyse: Callable[..., Analysis]
) -> None:
    source = RULE.replace("GATE", "action").replace("MORE", "outputs=(),")
    project.write(
        "rules/vetted/rule.py", source.replace('"compile", "admission")', '"admission",)', 1)
    )
    project.write("a/BUILD.toml", '[[vetted]]\nname = "t"\n')

    with pytest.raises(LoadError, match="is no gate"):
        analyse("//a:t")
