"""Several devices for one lease: any of them, one action each, and not those that are useless."""

from __future__ import annotations

import pytest

from kabuild.base.errors import DeviceError, InfraError, Reason
from kabuild.execution import CachedExecutor, Inputs
from kabuild.execution.prepared import Prepared
from kabuild.execution.strategy import Execution
from kabuild.model.action import Action, Resources
from kabuild.model.event import Warned
from kabuild.model.graph import ActionGraph
from kabuild.model.result import Outcome
from kabuild.scheduler import BuildResult, Pool, Scheduler
from kabuild.scheduler.workers import Run
from tests.testkit.actions import command
from tests.testkit.clock import FakeClock
from tests.testkit.events import RecordingSink
from tests.testkit.execution import MemoryLeases, ScriptedStrategy, ScriptedWorkers
from tests.testkit.index import NoIndex
from tests.testkit.store import MemoryActionCache, MemoryCas

TWO = Pool({"gpu-a": "cuda:0", "gpu-b": "cuda:1"})
ONE = Pool({"gpu-a": "cuda:0"})
NONE = Pool({}, "no cuda:sm_90 device on this machine")


class Watching(ScriptedWorkers):
    """Workers that note which devices are in use together."""

    def __init__(self) -> None:
        super().__init__()
        self.together: list[list[str]] = []

    def start(self, run: Run, *rest: object) -> None:
        super().start(run, *rest)  # type: ignore[arg-type]
        self.together.append(sorted(run.prepared.device for run in self.running))


class World:
    """A store in memory, a machine with devices, and what becomes of the actions on them."""

    def __init__(self) -> None:
        self.cas = MemoryCas()
        self.cache = MemoryActionCache(self.cas)
        self.strategy = ScriptedStrategy(self.cas)
        self.sink = RecordingSink()
        self.leases = MemoryLeases()
        self.clock = FakeClock()
        self.workers: ScriptedWorkers = Watching()
        self.useless: dict[str, DeviceError] = {}
        self.devices: dict[str, str] = {}

    def build(self, pool: Pool, *actions: Action, jobs: int = 4) -> BuildResult:
        for action in actions:
            self.strategy.behaviours.setdefault(str(action.label), self.behave)
        scheduler = Scheduler(
            CachedExecutor(Inputs({}, NoIndex()), self.cas, self.cache, self.strategy),
            self.sink,
            self.leases,
            jobs=jobs,
            clock=self.clock,
            workers=self.workers,
            pools={"cuda": pool},
        )
        result = scheduler.run(ActionGraph.of(actions))
        assert not self.leases.held, "a lease was not given back"
        return result

    def behave(self, prepared: Prepared) -> Execution:
        self.devices[str(prepared.action.label)] = prepared.device
        if error := self.useless.get(prepared.device):
            raise error
        return self.strategy.succeed(prepared)

    @property
    def warnings(self) -> list[str]:
        return [event.message for event in self.sink.of(Warned)]


@pytest.fixture
def world() -> World:
    return World()


def measurement(name: str) -> Action:
    return command(name, resources=Resources(lease="cuda"))


def useless(reason: Reason, name: str, *, spoiled: bool = False) -> DeviceError:
    return DeviceError(reason, f"{name} is of no use", spoiled=spoiled)


def outcomes(result: BuildResult) -> list[Outcome]:
    return [settled.outcome for settled in result.settled.values()]


def test_each_device_serves_one_action_at_a_time(world: World) -> None:
    result = world.build(TWO, *(measurement(name) for name in "abc"))

    assert outcomes(result) == [Outcome.DONE] * 3
    assert isinstance(world.workers, Watching)
    assert world.workers.together == [["gpu-a"], ["gpu-a", "gpu-b"], ["gpu-a", "gpu-b"]]
    assert not world.warnings


def test_what_needs_no_device_gets_none(world: World) -> None:
    world.build(TWO, command("compile"))

    assert world.devices == {"//t:compile": ""}


def test_the_device_is_outside_the_key(world: World) -> None:
    """What one device has settled is not run on the other."""
    world.build(ONE, measurement("a"))
    again = world.build(Pool({"gpu-b": "cuda:1"}), measurement("a"))

    assert again.settled["//t:a"].cached


def test_a_device_that_another_process_has_leaves_the_other(world: World) -> None:
    world.leases.taken.add("gpu-a")

    world.build(TWO, measurement("a"), measurement("b"))

    assert set(world.devices.values()) == {"gpu-b"}
    assert not world.warnings, "work goes on"


def test_waiting_for_other_processes_names_them_all(world: World) -> None:
    world.leases.taken |= {"gpu-a", "gpu-b"}
    waits: list[float | None] = []

    class Waiting(ScriptedWorkers):
        def wait(self, timeout: float | None) -> Run | None:
            waits.append(timeout)
            world.clock.advance(0.6)
            if len(waits) == 4:
                world.leases.taken.clear()
            return super().wait(timeout)

    world.workers = Waiting()
    result = world.build(TWO, measurement("a"))

    assert outcomes(result) == [Outcome.DONE]
    assert world.warnings == [
        "waiting for 'cuda:0', which process 123 is using, or 'cuda:1', which process 123 is using"
    ]


def test_without_a_device_nothing_is_judged_and_the_rest_is_built(world: World) -> None:
    compiled = command("compile")

    result = world.build(NONE, compiled, measurement("a"))

    assert outcomes(result) == [Outcome.DONE, Outcome.INFRA]
    judged = result.settled["//t:a"]
    assert judged.message == "no cuda:sm_90 device on this machine"
    assert judged.fault == "NO_DEVICE"


def test_what_is_cached_needs_no_device(world: World) -> None:
    world.build(ONE, measurement("a"))

    result = world.build(NONE, measurement("a"))

    assert result.settled["//t:a"].cached


@pytest.mark.parametrize("reason", [Reason.DEVICE_BUSY, Reason.DEVICE_LOST])
def test_a_useless_device_is_left_out_and_its_action_goes_elsewhere(
    world: World, reason: Reason
) -> None:
    world.useless["gpu-a"] = useless(reason, "cuda:0")

    result = world.build(TWO, *(measurement(name) for name in "abc"))

    assert outcomes(result) == [Outcome.DONE] * 3
    assert set(world.devices.values()) == {"gpu-b"}
    assert world.warnings == ["cuda:0 is of no use; this build goes on with cuda:1"]


def test_what_had_begun_on_a_device_that_was_lost_is_not_let_near_another(world: World) -> None:
    """It may be what killed the device."""
    world.useless["gpu-a"] = useless(Reason.DEVICE_LOST, "cuda:0", spoiled=True)

    result = world.build(TWO, *(measurement(name) for name in "abc"))

    assert outcomes(result) == [Outcome.INFRA, Outcome.DONE, Outcome.DONE]
    assert result.settled["//t:a"].message == "cuda:0 is of no use"


def test_when_the_last_device_is_lost_all_that_waits_for_one_ends(world: World) -> None:
    for lease, name in TWO.titles.items():
        world.useless[lease] = useless(Reason.DEVICE_LOST, name)

    result = world.build(TWO, *(measurement(name) for name in "abcd"), command("compile"))

    assert outcomes(result) == [Outcome.INFRA] * 4 + [Outcome.DONE]
    for settled in result.settled.values():
        assert settled.outcome is Outcome.DONE or "is of no use" in settled.message


def test_an_equal_action_that_waits_for_the_first_goes_elsewhere_with_it(world: World) -> None:
    world.useless["gpu-a"] = useless(Reason.DEVICE_BUSY, "cuda:0")
    lease = Resources(lease="cuda")
    twins = [command(name, "run", inputs={}, resources=lease) for name in ("a", "b")]

    result = world.build(TWO, *twins)

    assert outcomes(result) == [Outcome.DONE] * 2


def test_a_fault_that_is_not_the_devices_leaves_it_in_use(world: World) -> None:
    def break_down(prepared: Prepared) -> Execution:
        raise InfraError(Reason.SANDBOX_FAILED, "no more processes")

    world.strategy.behaviours["//t:a"] = break_down

    result = world.build(ONE, measurement("a"), measurement("b"))

    assert outcomes(result) == [Outcome.INFRA, Outcome.DONE]
