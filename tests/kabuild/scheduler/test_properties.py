"""Any graph, any order of completion: the promises of the scheduler hold."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kabuild.model.event import ActionSettled, ActionStarted
from kabuild.model.result import Outcome
from tests.testkit.builds import World, ends
from tests.testkit.examples import examples
from tests.testkit.graphs import Plan, plans

CHOICES = st.lists(st.integers(0, 99), max_size=20)


@given(plan=plans(), jobs=st.integers(1, 4), choices=CHOICES)
@settings(max_examples=examples(700), deadline=None)
def test_every_action_settles_as_the_rules_say(plan: Plan, jobs: int, choices: list[int]) -> None:
    world = World(plan)

    result, _ = world.build(choices, jobs=jobs)

    assert ends(result) == plan.expected()
    assert not result.interrupted
    for label, settled in result.settled.items():
        gate = plan.graph.actions[label].gate
        if settled.outcome is Outcome.SKIPPED or settled.stopped_by:
            assert settled.message
            assert str(settled.stopped_by) in plan.graph
        if gate and settled.outcome in {Outcome.DONE, Outcome.SKIPPED}:
            assert settled.result, "a gate's verdict can be read, even when it was skipped"
            assert settled.result.file("verdict.json")


@given(plan=plans(), jobs=st.integers(1, 4), choices=CHOICES)
@settings(max_examples=examples(200), deadline=None)
def test_equal_actions_run_once(plan: Plan, jobs: int, choices: list[int]) -> None:
    result, _ = (world := World(plan)).build(choices, jobs=jobs)

    keys = [result.settled[label].key for label in world.strategy.ran]
    done = [
        result.settled[label].key
        for label in world.strategy.ran
        if result.settled[label].outcome is Outcome.DONE
    ]
    assert len(done) == len(set(done))
    assert set(done) <= set(keys)


@given(plan=plans(), choices=CHOICES)
@settings(max_examples=examples(200), deadline=None)
def test_a_second_build_runs_only_what_may_not_be_cached(plan: Plan, choices: list[int]) -> None:
    world = World(plan)
    first, _ = world.build(choices)

    second, sink = world.build(choices)

    for label in world.strategy.ran:
        assert first.settled[label].outcome in {Outcome.FAILED, Outcome.INFRA}
    for label, settled in second.settled.items():
        assert settled.outcome is first.settled[label].outcome
        assert settled.verdict == first.settled[label].verdict
        assert settled.cached == (settled.outcome is Outcome.DONE)
    assert {str(e.label) for e in sink.of(ActionStarted)} == set(world.strategy.ran)


@given(
    plan=plans(),
    jobs=st.integers(1, 4),
    choices=CHOICES,
    stop_after=st.integers(0, 6),
)
@settings(max_examples=examples(400), deadline=None)
def test_interrupted_anywhere_finished_work_is_kept(
    plan: Plan, jobs: int, choices: list[int], stop_after: int
) -> None:
    world = World(plan)

    result, _ = world.build(choices, jobs=jobs, stop_after=stop_after)

    cancelled = [s for s in result.settled.values() if s.outcome is Outcome.CANCELLED]
    assert result.interrupted == bool(cancelled)
    finished = {
        label for label in world.strategy.ran if result.settled[label].outcome is Outcome.DONE
    }
    again, _ = world.build(choices, jobs=jobs)
    assert not finished & set(world.strategy.ran), "finished work ran again"
    assert ends(again) == plan.expected()


@given(plan=plans(), jobs=st.integers(1, 4), choices=CHOICES)
@settings(max_examples=examples(300), deadline=None)
def test_without_keep_going_nothing_starts_after_a_failure(
    plan: Plan, jobs: int, choices: list[int]
) -> None:
    world = World(plan)

    result, sink = world.build(choices, jobs=jobs, keep_going=False)

    failed = False
    for event in sink.events:
        if isinstance(event, ActionStarted):
            assert not failed, f"{event.label} started after a failure"
        elif isinstance(event, ActionSettled):
            fate = plan.fates[str(event.settled.label)]
            ran = str(event.settled.label) in world.strategy.ran
            failed = failed or (ran and fate != "succeed")
    assert not result.interrupted
    expected = plan.expected()
    for label, settled in result.settled.items():
        assert settled.outcome in {expected[label][0], Outcome.CANCELLED}


@given(plan=plans(), jobs=st.integers(1, 4), choices=CHOICES)
@settings(max_examples=examples(300), deadline=None)
def test_blobs_that_get_lost_during_a_build_are_made_again(
    plan: Plan, jobs: int, choices: list[int]
) -> None:
    """A first build fills the cache; during the second, outputs vanish three times."""
    world = World(plan)
    world.build(choices, jobs=jobs)
    for label in sorted(plan.graph.actions)[1::2]:
        world.forget(label)
    lost: list[str] = []

    def lose(drawn: int, needed: list[str]) -> None:
        if needed and drawn % 3 and len(lost) < 3:
            lost.append(needed[drawn % len(needed)])
            world.cas.blobs.pop(lost[-1], None)

    result, _ = world.build(choices, jobs=jobs, lose=lose)

    assert ends(result) == plan.expected()
