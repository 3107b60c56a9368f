"""The action graph."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.base.errors import AnalysisError, Reason
from kabuild.model.action import Action, Literal, Output
from kabuild.model.graph import ActionGraph
from kabuild.model.label import Label
from kabuild.model.platform import Platform


def make(name: str, *needs: str, requires: tuple[str, ...] = ()) -> Action:
    inputs = tuple((f"in/{need}", Output(f"//p:{need}", "file")) for need in needs)
    return Action(
        label=Label("p", name),
        argv=("true",),
        inputs=inputs,
        outputs=("file",),
        platform=Platform("cpu"),
        requires=tuple(Label("p", required) for required in requires),
    )


def test_dependencies_come_first() -> None:
    graph = ActionGraph.of([make("c", "b", requires=("a",)), make("b", "a"), make("a")])
    assert list(graph.actions) == ["//p:a", "//p:b", "//p:c"]
    assert graph.actions["//p:c"].dependencies() == ("//p:a", "//p:b")
    assert len(graph) == 3
    assert "//p:a" in graph
    assert Label("p", "b") in graph
    assert "//p:x" not in graph


def test_closure_is_what_the_roots_need() -> None:
    graph = ActionGraph.of([make("a"), make("b", "a"), make("c", "b"), make("d", "a")])
    assert [str(action.label) for action in graph.closure(["//p:b"])] == ["//p:a", "//p:b"]
    assert len(graph.closure([])) == 0


def test_a_cycle_is_named_with_its_path_only() -> None:
    actions = [make("start", "a"), make("a", "b"), make("b", "c"), make("c", "a")]
    with pytest.raises(AnalysisError) as caught:
        ActionGraph.of(actions)
    assert caught.value.reason is Reason.CYCLE
    assert "//p:a -> //p:b -> //p:c -> //p:a" in caught.value.message
    assert "start" not in caught.value.message


def test_a_cycle_through_order_alone_is_a_cycle() -> None:
    with pytest.raises(AnalysisError) as caught:
        ActionGraph.of([make("a", "b"), make("b", requires=("a",))])
    assert caught.value.reason is Reason.CYCLE


def test_a_missing_producer_is_named() -> None:
    with pytest.raises(AnalysisError, match="//p:a needs //p:gone") as caught:
        ActionGraph.of([make("a", "gone")])
    assert caught.value.reason is Reason.UNKNOWN_TARGET


def test_chains_may_be_longer_than_pythons_stack() -> None:
    chain = [make("0"), *(make(str(index), str(index - 1)) for index in range(1, 3000))]
    assert len(ActionGraph.of(reversed(chain))) == 3000


@given(
    st.integers(1, 12).flatmap(
        lambda n: st.tuples(
            st.just(n),
            st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)), max_size=30),
        )
    ),
    st.randoms(),
)
def test_any_graph_is_ordered_or_has_a_real_cycle(
    shape: tuple[int, list[tuple[int, int]]], random: object
) -> None:
    size, edges = shape
    needs: dict[int, set[int]] = {node: set() for node in range(size)}
    for user, used in edges:
        needs[user].add(used)
    actions = [make(str(user), *map(str, sorted(used))) for user, used in needs.items()]
    random.shuffle(actions)  # type: ignore[attr-defined]
    try:
        graph = ActionGraph.of(actions)
    except AnalysisError as error:
        path = [int(step.split(":")[1]) for step in error.message.split(": ", 1)[1].split(" -> ")]
        assert path[0] == path[-1]
        assert all(b in needs[a] for a, b in itertools.pairwise(path))
    else:
        order = [int(action.label.name) for action in graph]
        assert sorted(order) == list(range(size))
        assert all(order.index(used) < order.index(user) for user in needs for used in needs[user])


def test_inputs_that_nobody_makes_are_no_dependencies() -> None:
    action = Action(
        Label("p", "a"), ("true",), (("x", Literal(b"")),), (), platform=Platform("cpu")
    )
    assert action.dependencies() == ()
