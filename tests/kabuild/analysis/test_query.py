"""Questions about declared targets."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pytest

from kabuild.analysis.query import Node, query
from kabuild.analysis.query_format import FORMATS, format_label
from kabuild.base.errors import KabuildError, Reason
from kabuild.loading import Loader
from kabuild.model.label import Label

if TYPE_CHECKING:
    from tests.kabuild.conftest import Project


@pytest.fixture
def loader(project: Project) -> Loader:
    """//t/top -> //t/left, //t/right -> //t/end; //t/alone is manual."""
    project.task("t/top", 'deps = ["//t/left", "//t/right"]\ntags = ["smoke"]')
    project.write("t/left/BUILD.toml", '[[group]]\nname = "left"\ndeps = ["//t/end"]')
    project.write("t/right/BUILD.toml", '\n\n[[group]]\nname = "right"\ndeps = ["//t/end"]')
    project.write("t/end/BUILD.toml", '[[group]]\nname = "end"')
    project.task("t/alone", 'tags = ["manual", "x"]\nwave = 32\ndims = { n = 1 }')
    return project.loader()


def ask(loader: Loader, text: str, **more: str) -> str:
    return " ".join(node.label.short for node in query(loader, text, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("//t/...", "//t/alone //t/end //t/left //t/right //t/top"),
        ("//t/top:top.perf", "//t/top:top.perf"),
        ("//t/left + //t/end", "//t/end //t/left"),
        ("//t/... - //t/left - //t/alone", "//t/end //t/right //t/top"),
        ("//t/... ^ (//t/left + //t/end)", "//t/end //t/left"),
        ("deps(//t/left)", "//t/end //t/left"),
        ("deps(//t/top)", "//t/end //t/left //t/right //t/top //toolchains/cc:cpu"),
        ("deps(//t/top, 1) ^ //t/...", "//t/left //t/right //t/top"),
        ("deps(//t/top, 0)", "//t/top"),
        ("deps(//t/top:top.perf, 1)", "//t/top //t/top:top.perf"),
        ("rdeps(//..., //t/end)", "//t/end //t/left //t/right //t/top"),
        ("rdeps(//..., //t/end, 1)", "//t/end //t/left //t/right"),
        ("rdeps(//t/left, //t/end)", "//t/end //t/left"),
        ("rdeps(//t/left, //t/right)", ""),
        ("rdeps(//..., //toolchains/cc:cpu)", "//t/alone //t/top //toolchains/cc:cpu"),
        ("kind(task, //t/...)", "//t/alone //t/top"),
        ("kind('^group rule$', //t/...)", "//t/end //t/left //t/right"),
        ("kind(gate, //t/top:top.perf + //t/top:top.baseline.compile)", "//t/top:top.perf"),
        ("kind(part, //t/top:top.baseline.compile)", "//t/top:top.baseline.compile"),
        ("filter('t/.*e', //t/...)", "//t/alone //t/end //t/left"),
        ("attr(tags, smoke, //t/...)", "//t/top"),
        ("attr(tags, '\\[manual, x\\]', //t/...)", "//t/alone"),
        ("attr(name, '^a', //t/...)", "//t/alone"),
        ("attr(wave, '^32$', //t/...)", "//t/alone"),
        ("attr(fast, false, //t/...)", "//t/alone //t/top"),
        ("attr(dims, '\"n\":1', //t/...)", "//t/alone"),
        ("attr(source, top.src, //t/...)", "//t/top"),
        ("attr(deps, //t/end, //t/...)", "//t/left //t/right"),
        ("attr(compiler, cpu, //t/...)", "//t/alone //t/top"),
        ("attr(oracle, '.*', //t/...)", ""),
        ("tests(//t/top)", "//t/top:top.compile //t/top:top.perf //t/top:top.score"),
        ("tests(//t/left + //t/top:top.perf)", "//t/top:top.perf"),
        ("tests(//t/top:top.baseline.compile)", ""),
        ("somepath(//t/top, //t/end)", "//t/end //t/left //t/top"),
        ("somepath(//t/end, //t/top)", ""),
        ("somepath(//t/top, //t/top:top.perf)", "//t/top //t/top:top.perf"),
        ("somepath(//t/top:top.perf, //t/left)", "//t/left //t/top //t/top:top.perf"),
        ("somepath(//t/end, //t/top:top.perf)", ""),
        ("allpaths(//t/top, //t/top:top.perf)", "//t/top //t/top:top.perf"),
        ("rdeps(//..., //t/top:top.perf)", "//t/top //t/top:top.perf"),
        ("rdeps(//t/left, //t/top:top.perf)", ""),
        ("somepath(//t/end, //t/end)", "//t/end"),
        ("allpaths(//t/top, //t/end)", "//t/end //t/left //t/right //t/top"),
        ("allpaths(//t/left, //t/end)", "//t/end //t/left"),
        ("allpaths(//t/end, //t/left)", ""),
    ],
)
def test_answers(loader: Loader, text: str, labels: str) -> None:
    assert ask(loader, text) == labels


def test_dependencies_follow_the_platform(loader: Loader) -> None:
    assert "//toolchains/cc:rocm" in ask(loader, "deps(//t/top)", platform="rocm")


def test_the_agent_is_a_dependency_of_what_has_gates(loader: Loader) -> None:
    agent = Label("toolchains/agents", "expert")
    nodes = query(loader, "deps(//t/top)", agent=agent)
    assert agent in {node.label for node in nodes}
    assert agent not in {node.label for node in query(loader, "deps(//t/left)", agent=agent)}


def test_patterns_are_relative(loader: Loader) -> None:
    assert ask(loader, "deps(left)", package="t") == "//t/end //t/left"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("deps(//t/lefft)", Reason.UNKNOWN_PACKAGE),
        ("deps(//t/left:x)", Reason.UNKNOWN_TARGET),
        ("//t/a b", Reason.BAD_QUERY),
        ("@x/a", Reason.BAD_LABEL),
        ("@x//a", Reason.UNKNOWN_PACKAGE),
    ],
)
def test_mistakes(loader: Loader, text: str, reason: Reason) -> None:
    with pytest.raises(KabuildError) as caught:
        ask(loader, text)
    assert caught.value.reason is reason


@pytest.fixture
def nodes(loader: Loader) -> tuple[Node, ...]:
    return query(loader, "//t/right + //t/end + //t/top:top.perf")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "label_kind",
            "group rule //t/end:end\ngroup rule //t/right:right\ntask gate //t/top:top.perf\n",
        ),
        (
            "location",
            """\
t/end/BUILD.toml:1: group rule //t/end:end
t/right/BUILD.toml:3: group rule //t/right:right
t/top/BUILD.toml:1: task gate //t/top:top.perf
""",
        ),
        (
            "graph",
            """\
digraph kabuild {
  "//t/end:end";
  "//t/right:right";
  "//t/right:right" -> "//t/end:end";
  "//t/top:top.perf";
}
""",
        ),
    ],
)
def test_formats(nodes: tuple[Node, ...], name: str, text: str) -> None:
    labels = "//t/end:end\n//t/right:right\n//t/top:top.perf\n"
    assert format_label([node.label for node in nodes]) == labels
    assert FORMATS[name](nodes) == text


def test_json(nodes: tuple[Node, ...]) -> None:
    end, right, perf = json.loads(FORMATS["json"](nodes))
    assert end["deps"] == []
    assert right == {
        "label": "//t/right:right",
        "kind": "group rule",
        "file": "t/right/BUILD.toml",
        "line": 3,
        "tags": [],
        "deps": ["//t/end:end"],
        "attrs": {"deps": ["//t/end:end"]},
    }
    assert perf["attrs"]["source"] == "t/top/top.src"
    assert perf["attrs"]["wave"] == 64


def test_declarations_read_back(nodes: tuple[Node, ...]) -> None:
    """Sub-targets have no declaration of their own."""
    text = FORMATS["build"](nodes)

    assert "# t/right/BUILD.toml:3\n" in text
    assert tomllib.loads(text)["group"] == [
        {"name": "end", "deps": [], "tags": []},
        {"name": "right", "deps": ["//t/end:end"], "tags": []},
    ]


def test_values_that_json_cannot_hold_become_text(project: Project) -> None:
    project.task("a", "ratio = nan\ndims = { d = 1979-05-27 }")
    (node,) = query(project.loader(), "//a")
    assert (node.attrs["ratio"], node.attrs["dims"]) == ("nan", {"d": "1979-05-27"})
    assert json.loads(FORMATS["json"]((node,)))


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_an_empty_answer_is_well_formed(name: str) -> None:
    text = FORMATS[name](())
    assert text in {"", "[]\n", "digraph kabuild {\n}\n"}
