"""Priorities, and the history they come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from kabuild.model.graph import ActionGraph
from kabuild.scheduler.plan import DEFAULT_SECONDS, History, priorities
from tests.testkit.actions import command
from tests.testkit.graphs import Plan, plans


@given(plan=plans())
def test_a_priority_is_the_longest_chain_to_the_end(plan: Plan) -> None:
    """Against the definition, by recursion over all paths."""
    graph = plan.graph
    estimates = {label: float(index + 1) for index, label in enumerate(graph.actions)}

    def longest(label: str) -> float:
        after = [o for o, action in graph.actions.items() if label in action.dependencies()]
        return estimates[label] + max(map(longest, after), default=0.0)

    assert priorities(graph, estimates) == {label: longest(label) for label in graph.actions}


def test_what_is_known_is_used_and_the_rest_guessed_from_its_kind(tmp_path: Path) -> None:
    known, alike, unlike = (
        command("known", mnemonic="Compile"),
        command("alike", mnemonic="Compile"),
        command("unlike", mnemonic="Judge"),
    )
    history = History(tmp_path / "timings.json")
    history.record(known, 4.0)
    history.record(command("other", mnemonic="Compile"), 2.0)
    history.save()

    estimates = History(tmp_path / "timings.json").estimates(ActionGraph.of([known, alike, unlike]))

    assert estimates == {"//t:known": 4.0, "//t:alike": 3.0, "//t:unlike": DEFAULT_SECONDS}


def test_two_processes_keep_each_others_timings(tmp_path: Path) -> None:
    path = tmp_path / "timings.json"
    first, second = History(path), History(path)
    a, b = command("a"), command("b")
    graph = ActionGraph.of([a, b])
    first.estimates(graph)
    second.estimates(graph)
    first.record(a, 7.0)
    second.record(b, 8.0)
    first.save()
    second.save()

    assert History(path).estimates(graph) == {"//t:a": 7.0, "//t:b": 8.0}


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"schema": 2}', b'{"schema": 1, "labels": {"//t:a": 3}}']
)
def test_a_spoilt_history_is_no_history(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "timings.json").write_bytes(data)

    estimates = History(tmp_path / "timings.json").estimates(ActionGraph.of([command("a")]))

    assert estimates == {"//t:a": DEFAULT_SECONDS}


def test_a_history_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    history = History(tmp_path / "file" / "timings.json")
    history.record(command("a"), 1.0)

    history.save()

    assert not list(tmp_path.glob("**/timings*"))
