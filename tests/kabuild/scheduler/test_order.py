"""Which of the actions that could start goes first."""

from __future__ import annotations

from dataclasses import replace

from kabuild.model.action import Action, Literal, Resources
from kabuild.model.label import Label
from tests.kabuild.scheduler.test_scheduler import World
from tests.testkit.actions import command


def test_the_longest_path_goes_first() -> None:
    """Two chains, one slot: the one that takes longer to its end starts first."""
    world = World()
    short = command("short", mnemonic="Short")
    head = command("head", mnemonic="Head")
    tail = command("tail", inputs={"head": head.output("result")}, mnemonic="Tail")
    for action, seconds in ((short, 3.0), (head, 1.0), (tail, 5.0)):
        world.history.record(action, seconds)

    world.build(short, head, tail, jobs=1)

    assert world.strategy.ran == ["//t:head", "//t:tail", "//t:short"]


def test_a_task_that_has_a_device_goes_on_before_others_begin() -> None:
    """By the longest chain alone, the baselines of all tasks would come before any verdict."""
    world = World()
    on_device = Resources(lease="gpu")
    actions: list[Action] = []
    for task in "ab":
        baseline = command("baseline", resources=on_device, inputs={"of": Literal(task.encode())})
        baseline = replace(baseline, label=Label(task, "baseline"))
        correct = replace(baseline, label=Label(task, "correctness"), argv=("run", "it"))
        inputs = (("baseline", baseline.output("result")), ("correct", correct.output("result")))
        perf = replace(baseline, label=Label(task, "perf"), inputs=inputs)
        actions += [baseline, correct, perf]
        for action, seconds in ((baseline, 30.0), (correct, 5.0), (perf, 20.0)):
            world.history.record(action, seconds)

    world.build(*actions, jobs=1)

    assert world.strategy.ran == [
        f"//{task}:{name}" for task in "ab" for name in ("baseline", "correctness", "perf")
    ]
