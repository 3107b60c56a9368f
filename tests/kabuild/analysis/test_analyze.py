"""Targets to actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from kabuild.analysis import Analysis
from kabuild.base.errors import (
    AnalysisError,
    InternalError,
    KabuildError,
    LoadError,
    Position,
    Reason,
    ToolchainError,
    UsageError,
)
from kabuild.model.action import Toolchain
from kabuild.model.label import Label
from kabuild.toolchain import Declaration

if TYPE_CHECKING:
    from tests.kabuild.conftest import Project

Analyse = Callable[..., Analysis]


def texts(labels: tuple[Label, ...]) -> list[str]:
    return [label.name for label in labels]


def judging(analysis: Analysis, label: Label) -> list[str]:
    return texts(tuple(part for _, part in analysis.gates(label)))


def test_gates_become_actions_in_order(project: Project, analyse: Analyse) -> None:
    project.task("a")
    analysis = analyse("//a")
    assert list(analysis.graph.actions) == ["//a:a.compile", "//a:a.perf", "//a:a.score"]
    assert judging(analysis, Label("a", "a")) == ["a.compile", "a.perf", "a.score"]
    assert texts(analysis.builds(Label("a", "a"))) == ["a.score"]


def test_a_subtarget_means_itself(project: Project, analyse: Analyse) -> None:
    project.task("a")
    analysis = analyse("//a:a.perf")
    assert analysis.requested == (Label("a", "a.perf"),)
    assert judging(analysis, Label("a", "a.perf")) == ["a.perf"]
    assert texts(analysis.builds(Label("a", "a.perf"))) == ["a.perf"]


def test_a_subtarget_that_the_rule_left_out(project: Project, analyse: Analyse) -> None:
    project.task("a")
    label = Label("a", "a.baseline.compile")
    analysis = analyse(str(label))
    assert analysis.gates(label) == ()
    with pytest.raises(AnalysisError, match=r"//a has no //a:a.baseline.compile") as caught:
        analysis.builds(label)
    assert caught.value.reason is Reason.UNKNOWN_TARGET
    assert caught.value.position == Position("a/BUILD.toml", 1)


def test_a_target_without_actions(analyse: Analyse) -> None:
    analysis = analyse("//toolchains/agents:expert")
    label = Label("toolchains/agents", "expert")
    assert (analysis.gates(label), analysis.builds(label), len(analysis.graph)) == ((), (), 0)


def test_dependencies_are_analysed_once_and_first(project: Project, analyse: Analyse) -> None:
    project.task("a", 'deps = ["//b", "//c"]')
    project.task("b", 'deps = ["//c"]')
    project.task("c")
    order = [label.short for label in analyse("//a", "//b").targets]
    assert order.index("//c") < order.index("//b") < order.index("//a")
    assert len(order) == len(set(order)) == 5  # with compiler and agent


CHATTY = """\
from dataclasses import dataclass
from kabuild.rule import Context, Label, Provider, Rule, attr

@dataclass(frozen=True)
class Word(Provider):
    text: str

def implement(ctx: Context) -> None:
    words = [ctx.provider(label, Word).text for label in ctx.attrs["deps"]]
    ctx.provide(Word(ctx.label.name + "(" + ",".join(words) + ")"))
    ctx.action("", argv=tuple(words), inputs={}, outputs=("o",), mnemonic="Say")
    if ctx.attrs["stranger"]:
        ctx.provider(Label.parse(ctx.attrs["stranger"]), Word)

RULE = Rule(kind="chatty", doc="x", implement=implement, attrs={
    "deps": attr.labels("x"), "stranger": attr.string("x")})
"""


def test_providers_travel_along_labels(project: Project, analyse: Analyse) -> None:
    project.write("rules/chatty/rule.py", CHATTY)
    project.write(
        "a/BUILD.toml",
        '[[chatty]]\nname = "x"\ndeps = [":y", ":z"]\n[[chatty]]\nname = "y"\ndeps = [":z"]\n'
        '[[chatty]]\nname = "z"\n',
    )
    analysis = analyse("//a:x")
    assert analysis.graph.actions["//a:x"].argv == ("y(z())", "z()")
    assert texts(analysis.builds(Label("a", "x"))) == ["x"]


def test_only_declared_dependencies_can_be_asked(project: Project, analyse: Analyse) -> None:
    project.write("rules/chatty/rule.py", CHATTY)
    project.write(
        "a/BUILD.toml",
        '[[chatty]]\nname = "z"\n[[chatty]]\nname = "x"\nstranger = "//a:z"\n',
    )
    with pytest.raises(AnalysisError) as caught:
        analyse("//a:z", "//a:x")
    assert caught.value.reason is Reason.NO_PROVIDER
    assert caught.value.position == Position("a/BUILD.toml", 3)


def test_a_cycle_is_named_with_its_path_and_line(project: Project, analyse: Analyse) -> None:
    project.task("start", 'deps = ["//a"]')
    project.task("a", 'deps = [\n  "//c",\n  "//b",\n]')
    project.task("b", 'deps = ["//a"]')
    project.task("c")
    with pytest.raises(AnalysisError) as caught:
        analyse("//start")
    assert caught.value.reason is Reason.CYCLE
    assert str(caught.value) == ("a/BUILD.toml:6: targets depend on each other: //a -> //b -> //a")


def test_a_target_that_needs_itself(project: Project, analyse: Analyse) -> None:
    project.task("a", 'deps = [":a"]')
    with pytest.raises(AnalysisError, match=r"//a -> //a"):
        analyse("//a")


def test_an_agent_cannot_depend_on_what_it_solves(project: Project, analyse: Analyse) -> None:
    project.write("agents/BUILD.toml", '[[group]]\nname = "x"\ndeps = ["//a"]')
    project.task("a")
    with pytest.raises(AnalysisError, match=r"//a -> //agents:x -> //a") as caught:
        analyse("//a", agent="//agents:x")
    assert caught.value.position == Position("a/BUILD.toml", 1)


def test_chains_may_be_longer_than_pythons_stack(project: Project, analyse: Analyse) -> None:
    groups = (f'[[group]]\nname = "g{index}"\ndeps = [":g{index + 1}"]\n' for index in range(1200))
    project.write("a/BUILD.toml", "".join(groups) + '[[group]]\nname = "g1200"\n')
    assert len(analyse("//a:g0").targets) == 1201


@pytest.mark.parametrize(
    ("agent", "hint"),
    [
        ("//toolchains/agents:export", "did you mean 'expert'?"),
        ("//nothing:here", "agents: none"),
        ("//toolchains/agents/expert", "did you mean '//toolchains/agents:expert'?"),
        ("//toolchains/agents:zzz", "agents: expert"),
        ("//toolchains/agents:their-cli", "agents: expert"),
        ("//a", "agents: none"),
    ],
)
def test_an_unknown_agent(project: Project, analyse: Analyse, agent: str, hint: str) -> None:
    project.task("a")
    cli = '[[toolchain]]\nname = "their-cli"\nrole = "agent-cli"\nlocal = "/opt/cli"\n'
    project.write("toolchains/agents/BUILD.toml", f'[[group]]\nname = "expert"\n{cli}')
    with pytest.raises(UsageError) as caught:
        analyse("//a", agent=agent)
    assert caught.value.reason is Reason.UNKNOWN_AGENT
    assert caught.value.hint == hint


def test_an_agent_of_the_workspace_is_offered(project: Project, analyse: Analyse) -> None:
    project.task("a")
    project.write("agents/BUILD.toml", '[[group]]\nname = "mine"\n')
    with pytest.raises(UsageError, match="no agent //toolchains/agents:mine") as caught:
        analyse("//a", agent="//toolchains/agents:mine")
    assert caught.value.hint == "did you mean '//agents:mine'?"


def test_an_agents_name_that_stands_for_nothing(project: Project, analyse: Analyse) -> None:
    project.task("a")
    project.write("WORKSPACE.toml", 'name = "p"\n\n[agents]\nmine = "//agents:nix"\n')
    with pytest.raises(LoadError, match=r"\[agents\] mine: no agent //agents:nix") as caught:
        analyse("//a", agent="//agents:nix")
    assert caught.value.position == Position("WORKSPACE.toml", 4)


def test_without_gates_no_agent_is_needed(analyse: Analyse) -> None:
    assert analyse("//toolchains/cc:cpu", agent="//nothing:here").targets


@pytest.mark.parametrize(
    ("dep", "reason", "hint"),
    [
        ("//toolchains/cc:cpy", Reason.UNKNOWN_TARGET, "did you mean ':cpu'?"),
        ("//toolchains/c", Reason.UNKNOWN_PACKAGE, "did you mean '//toolchains/cc'?"),
        ("a", Reason.UNKNOWN_PACKAGE, "did you mean '//a:a'?"),
    ],
)
def test_an_unknown_label_is_an_error_at_its_line(
    project: Project, analyse: Analyse, dep: str, reason: Reason, hint: str
) -> None:
    project.task("a", f'deps = [\n  "//toolchains/cc:cpu",\n  "{dep}",\n]')
    with pytest.raises(LoadError) as caught:
        analyse("//a")
    assert caught.value.reason is reason
    assert caught.value.hint == hint
    assert caught.value.position == Position("a/BUILD.toml", 6)


def test_replacements_apply_to_labels(project: Project, analyse: Analyse) -> None:
    """The target keeps the label that it declared; what stands for it is another target."""
    project.write("WORKSPACE.toml", 'name = "x"\n[toolchains]\n"//toolchains/cc:cpu" = "//my:cc"')
    project.write("my/BUILD.toml", '[[group]]\nname = "cc"')
    project.task("a")
    analysis = analyse("//a")
    assert Label("my", "cc") in analysis.targets
    assert Label("toolchains/cc", "cpu") not in analysis.targets
    target = analysis.targets[Label("a", "a")].target
    assert target.attrs["compiler"] == Label("toolchains/cc", "cpu")


RULE = """\
from kabuild.rule import AttributeProblem, Context, Gate, Label, Reason, Rule, AnalysisError, attr


def implement(ctx: Context) -> None:
    {body}


RULE = Rule(kind="odd", doc="x", implement=implement, subtargets=("x",), gates=(Gate("perf"),),
            attrs={{"dims": attr.table("x")}})
"""
ACTION = "argv=(), inputs={}, outputs=(), mnemonic='x'"
NOT_GIVEN = f"ctx.action('x', {ACTION})".replace("{}", "{'a.py': ctx.attrs['dims']}")


@pytest.mark.parametrize(
    ("body", "kind", "reason", "where", "message"),
    [
        ("1 / 0", LoadError, Reason.BAD_RULE, "rule.py:5", "ZeroDivisionError"),
        (
            NOT_GIVEN,
            LoadError,
            Reason.BAD_RULE,
            "rule.py:5",
            "TypeError: the input 'a.py' is {'n': 1}, not a source",
        ),
        (f"ctx.action('y', {ACTION})", LoadError, Reason.BAD_RULE, "rule.py", "//a:t.y, which"),
        (f"ctx.action('perf', {ACTION})", LoadError, Reason.BAD_RULE, "rule.py", "is no gate"),
        (f"ctx.gate('x', {ACTION})", LoadError, Reason.BAD_RULE, "rule.py", "is a gate"),
        (
            f"ctx.action('x', {ACTION}); ctx.action('x', {ACTION})",
            LoadError,
            Reason.BAD_RULE,
            "rule.py",
            "//a:t.x",
        ),
        (
            "raise AttributeProblem('bad n', ('dims', 'n'))",
            LoadError,
            Reason.BAD_ATTRIBUTE,
            "a/BUILD.toml:5",
            "bad n",
        ),
        (
            "raise AnalysisError(Reason.BAD_ATTRIBUTE, 'no')",
            AnalysisError,
            Reason.BAD_ATTRIBUTE,
            "a/BUILD.toml:1",
            "no",
        ),
        (
            "ctx.toolchain('//toolchains/cc:cpu')",
            AnalysisError,
            Reason.NO_TOOLCHAIN,
            "a/BUILD.toml:1",
            "//toolchains/cc:cpu is a group",
        ),
        (
            "ctx.toolchain('//toolchains/cc:cp')",
            LoadError,
            Reason.UNKNOWN_TARGET,
            "a/BUILD.toml:1",
            "no target ':cp'",
        ),
    ],
)
def test_what_rules_do_wrong(
    project: Project,
    analyse: Analyse,
    body: str,
    kind: type[KabuildError],
    reason: Reason,
    where: str,
    message: str,
) -> None:
    project.write("rules/odd/rule.py", RULE.format(body=body))
    project.write("a/BUILD.toml", '[[odd]]\nname = "t"\n\n[odd.dims]\nn = 1\n')
    with pytest.raises(kind) as caught:
        analyse("//a:t")
    assert type(caught.value) is kind
    assert caught.value.reason is reason
    assert str(caught.value.position).endswith(where)
    assert message in caught.value.message


def test_a_rule_that_ships_with_kabuild_fails_as_kabuild(
    project: Project, analyse: Analyse
) -> None:
    project.write("builtin/rules/odd/rule.py", RULE.format(body="1 / 0"))
    project.write("a/BUILD.toml", '[[odd]]\nname = "t"\n\n[odd.dims]\nn = 1\n')
    with pytest.raises(InternalError, match="ZeroDivisionError") as caught:
        analyse("//a:t")
    assert str(caught.value.position).endswith("builtin/rules/odd/rule.py:5")


TOOLCHAIN = """\
[[toolchain]]
name = "zig"
role = "compiler"
platforms = ["cpu"]
local = "/opt/zig"
"""


def resolve(
    declaration: Declaration, *, name: str, fetch: bool = True, secrets: tuple[str, ...] = ()
) -> Toolchain:
    return Toolchain(name, declaration.role, b"{}", home=str(declaration.label))


@pytest.fixture
def using(project: Project) -> Project:
    body = f"ctx.action('x', {ACTION}, toolchains=(ctx.toolchain('//t:zig'),))"
    project.write("rules/odd/rule.py", RULE.format(body=body))
    project.write("t/BUILD.toml", TOOLCHAIN)
    project.write("a/BUILD.toml", '[[odd]]\nname = "t"\n[[odd]]\nname = "u"')
    return project


def test_toolchains_are_found_once(using: Project, analyse: Analyse) -> None:
    asked = []

    def remember(
        declaration: Declaration, *, name: str, fetch: bool = True, secrets: tuple[str, ...] = ()
    ) -> Toolchain:
        asked.append(declaration.label)
        return resolve(declaration, name=name)

    analysis = analyse("//a:t", "//a:u", resolve=remember)
    assert asked == [Label("t", "zig")]
    assert analysis.graph.actions["//a:t.x"].toolchains[0].role == "compiler"


def test_a_replaced_toolchain_keeps_the_name_that_rules_use(
    using: Project, analyse: Analyse
) -> None:
    using.write("WORKSPACE.toml", 'name = "x"\n[toolchains]\n"//t:zig" = "//my:llvm"')
    using.write("my/BUILD.toml", TOOLCHAIN.replace('"zig"', '"llvm"'))
    (toolchain,) = analyse("//a:t", resolve=resolve).graph.actions["//a:t.x"].toolchains
    assert (toolchain.name, toolchain.home) == ("zig", "//my:llvm")


def test_a_toolchain_for_other_platforms(using: Project, analyse: Analyse) -> None:
    with pytest.raises(AnalysisError, match="does not support platform 'cuda'") as caught:
        analyse("//a:t", platform="cuda", resolve=resolve)
    assert caught.value.reason is Reason.NO_TOOLCHAIN
    assert caught.value.position == Position("t/BUILD.toml", 1)


def test_a_toolchain_that_this_machine_lacks(using: Project, analyse: Analyse) -> None:
    using.write("t/BUILD.toml", TOOLCHAIN.replace("/opt/zig", "/nothing/here"))
    with pytest.raises(ToolchainError, match="/nothing/here does not exist") as caught:
        analyse("//a:t")
    assert caught.value.position == Position("t/BUILD.toml", 1)


def test_unused_toolchains_are_not_looked_for(using: Project, analyse: Analyse) -> None:
    assert analyse("//t:zig").targets
