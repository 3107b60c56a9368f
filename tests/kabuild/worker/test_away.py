"""Nodes that are away: one that starts again is waited for, and no build waits for all again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kabuild.base.errors import InfraError
from kabuild.execution.remote_run import MOST_ROUNDS
from kabuild.model.action import Action
from tests.testkit.actions import command
from tests.testkit.clock import FakeClock
from tests.testkit.fleet import require_fleet

require_fleet()

from tests.testkit.scripted import ACTION, NOW, TIMED, Fleet, a_scripted_fleet


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with a_scripted_fleet(tmp_path) as fleet:
        yield fleet


def take_node_away(fleet: Fleet) -> str:
    """Have the worker's program look for its node where none is: its text before."""
    program = fleet.fixture.program
    text = program.read_text()
    program.write_text(text.replace("node.sock", "nobody.sock"))
    return text


def test_a_node_that_is_away_is_named(fleet: Fleet) -> None:
    take_node_away(fleet)

    assert "no node serves at" in fleet.failure(away=0.0).message
    assert len(fleet.fixture.engine.ran) == 2


def test_one_action_waits_in_vain_for_all(fleet: Fleet) -> None:
    """Those after it are tried as often as with any failure, however long a node may be away."""
    engine = fleet.fixture.engine
    take_node_away(fleet)
    clock = FakeClock()
    engine.before = lambda _: clock.advance(100.0)
    client = fleet.fixture.fleet(away=350.0, clock=clock)
    ran = []
    for name in "ab":
        with pytest.raises(InfraError) as caught:
            client.run(fleet.fixture.prepared(command(name)), NOW)
        assert "no node serves at" in caught.value.message
        ran.append(len(engine.ran))

    assert ran == [5, 5 + MOST_ROUNDS]


@pytest.mark.parametrize("action", [ACTION, TIMED], ids=["untimed", "timed"])
def test_a_node_that_starts_again_is_waited_for(fleet: Fleet, action: Action) -> None:
    """Its worker refuses one action after another meanwhile: more often than failures count."""
    program, engine = fleet.fixture.program, fleet.fixture.engine
    text = take_node_away(fleet)
    away = 2 * MOST_ROUNDS
    engine.before = lambda _: program.write_text(text) if len(engine.ran) > away else None

    assert fleet.is_right(action, away=600.0)
    assert (len(engine.ran), fleet.strategy.ran) == (away + 1, 1)


def test_a_question_does_not_wait_for_a_node(fleet: Fleet) -> None:
    take_node_away(fleet)

    with pytest.raises(InfraError) as caught:
        fleet.fixture.fleet(away=600.0).survey({}, NOW)
    assert "no node serves at" in caught.value.message
    assert len(fleet.fixture.engine.ran) == MOST_ROUNDS
