"""Who waits for slots and devices: in which order they start, and what asking costs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.execution.prepared import Prepared, prepare
from kabuild.model.action import Resources
from kabuild.scheduler.run_queue import RunQueue
from kabuild.scheduler.workers import Run
from kabuild.store import merkle
from tests.testkit.actions import command

NEEDS = (Resources(), Resources(2), Resources(lease="gpu"), Resources(0, "gpu", timed=True))
ROOT = merkle.build([])


def waiting(place: int, needs: Resources = NEEDS[0]) -> Prepared:
    """An action that is ready to run."""
    return prepare(command(f"a{place}", "run", resources=needs), ROOT)


class Beginner:
    """Begins what fits into so many slots of each kind; notes what it was asked."""

    def __init__(self, room: dict[Resources, int]) -> None:
        self.room = room
        self.asked: list[str] = []

    def __call__(self, label: str, prepared: Prepared) -> Run | None:
        self.asked.append(label)
        needs = prepared.action.resources
        if not self.room.get(needs):
            return None
        self.room[needs] -= 1
        return Run(label, prepared, ())


def names(runs: list[Run]) -> list[str]:
    """The labels' last parts."""
    return [run.label.rpartition(":")[2] for run in runs]


def test_the_most_urgent_that_fits_starts_first() -> None:
    """Whatever line it stands in; equally urgent ones start in the order of the graph."""
    queue = RunQueue()
    for place, (needs, urgency) in enumerate(
        [(NEEDS[0], -1.0), (NEEDS[1], -3.0), (NEEDS[2], -2.0), (NEEDS[0], -1.0), (NEEDS[1], -5.0)]
    ):
        queue.push(waiting(place, needs), (1, urgency), place)

    begin = Beginner({NEEDS[0]: 2, NEEDS[1]: 1, NEEDS[2]: 1})

    assert names(list(queue.start(begin))) == ["a4", "a2", "a0", "a3"]
    assert names([Run("x:a1", p, ()) for p in queue.drain()]) == ["a1"]


@pytest.mark.parametrize("crowd", [6, 300])
def test_a_turn_asks_as_often_as_it_starts_and_once_for_each_kind_of_need(crowd: int) -> None:
    """Never for everyone who waits: builds have tens of thousands of them."""
    queue = RunQueue()
    for place in range(crowd):
        queue.push(waiting(place, NEEDS[place % 3]), (1, 0.0), place)
    begin = Beginner({NEEDS[0]: 1})

    assert names(list(queue.start(begin))) == ["a0"]
    assert len(begin.asked) == 1 + 3


def test_drained_by_lease_the_others_wait_on() -> None:
    """With no device left, all that need one of that name go, timed or not."""
    queue = RunQueue()
    for place, needs in enumerate(NEEDS):
        queue.push(waiting(place, needs), (1, -float(place)), place)

    gone = queue.drain("gpu")

    assert [prepared.action.label.name for prepared in gone] == ["a3", "a2"]
    assert [prepared.action.label.name for prepared in queue.drain()] == ["a1", "a0"]
    assert list(queue.start(Beginner(dict.fromkeys(NEEDS, 9)))) == []


@given(
    st.lists(
        st.tuples(st.sampled_from(["push", "hasten", "withdraw", "start"]), st.integers(0, 7)),
        max_size=40,
    )
)
def test_like_one_sorted_list_whatever_happens(steps: list[tuple[str, int]]) -> None:
    """Pushed, withdrawn and pushed again, everyone who waits starts once, in order."""
    queue = RunQueue()
    model: dict[str, tuple[int, int, str]] = {}
    for step, place in steps:
        label = str(waiting(place).action.label)
        if step == "push" and label not in model:
            model[label] = (place % 3, place, label)
            queue.push(waiting(place, NEEDS[place % 2]), (1, float(place % 3)), place)
        elif step == "hasten" and label in queue:
            model[label] = (-1, place, label)
            queue.hasten(label, (0, 0.0), place)
        elif step == "withdraw" and label in model:
            del model[label]
            assert str(queue.withdraw(label).action.label) == label
        elif step == "start":
            run = next(queue.start(Beginner(dict.fromkeys(NEEDS, 9))), None)
            expected = min(model.values(), default=None)
            assert (run.label if run else None) == (expected and expected[2])
            model.pop(run.label if run else "", None)
    rest = [str(prepared.action.label) for prepared in queue.drain()]
    assert rest == [label for _, _, label in sorted(model.values())]
