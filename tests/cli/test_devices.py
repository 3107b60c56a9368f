"""Real processes on two GPUs: in parallel, exclusively, across processes, and when one is lost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.fake_nvidia import compile_driver, make_fake
from tests.testkit.two_gpus import TwoGpus, ended

BUILD = ("build", "//t:all", "--platform=cuda", "--jobs=4", "--keep_going")


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def machine(workspace: CliWorkspace, tmp_path: Path, driver: Path) -> Iterator[TwoGpus]:
    with ExitStack() as stack:
        yield TwoGpus(workspace, make_fake(tmp_path / "machine", driver), stack)


def test_two_devices_serve_three_actions_two_at_a_time(machine: TwoGpus) -> None:
    """Each sees its own device alone; the third begins when one of them is free."""
    machine.declare("a", "b", "c")
    first, second = machine.gpus
    with machine.kabuild(*BUILD) as process:
        heard = [machine.begun(first), machine.begun(second)]

        assert [line[1] for line in heard] == [first.uuid, second.uuid]
        assert [Path(line[2]).name for line in heard] == ["nvidia0", "nvidia1"]
        assert first.is_idle()
        second.release()
        third = machine.begun(second)
        assert {heard[0][0], heard[1][0], third[0]} == {"a", "b", "c"}
        for gpu in machine.gpus:
            gpu.release()
        code, output = ended(process)

    assert code == 0, output


def test_another_process_waits_and_says_for_whom(machine: TwoGpus) -> None:
    machine.declare("a", "b")
    first, second = machine.gpus
    with (
        machine.kabuild("build", "//t:a", "--platform=cuda", "--devices=0") as one,
        machine.kabuild("build", "//t:b", "--platform=cuda", "--devices=0") as two,
    ):
        name = machine.begun(first)[0]
        holder, waiter = (one, two) if name == "a" else (two, one)
        assert waiter.stdout is not None
        said = next(line for line in waiter.stdout if "waiting" in line)
        assert said.strip().endswith(f"waiting for 'cuda:0', which process {holder.pid} is using")
        assert first.is_idle()
        first.release()
        assert ended(holder)[0] == 0
        assert machine.begun(first)[0] != name
        first.release()
        assert ended(waiter)[0] == 0
        assert second.is_idle(), "--devices=0 leaves the other alone"


def test_the_death_of_a_process_frees_its_device(machine: TwoGpus) -> None:
    machine.declare("a")
    first, _ = machine.gpus
    only = ("build", "//t:a", "--platform=cuda", "--devices=0")
    with machine.kabuild(*only) as one:
        machine.begun(first)
        one.kill()
        one.wait()
    with machine.kabuild(*only) as two:
        machine.begun(first)
        first.release()
        code, output = ended(two)

    assert code == 0, output


def test_a_device_that_is_lost_while_it_is_used_voids_that_action_only(machine: TwoGpus) -> None:
    machine.declare("a", "b", "c")
    first, second = machine.gpus
    with machine.kabuild(*BUILD) as process:
        victim = machine.begun(first)[0]
        machine.begun(second)
        machine.has("lost 0")
        first.release()
        second.release()
        machine.begun(second)
        second.release()
        code, output = ended(process)

    assert code == 36
    assert "cuda:0 no longer answers: nvmlDeviceGetHandleByUUID: GPU is lost" in output
    assert f"//t:{victim}  infra" in output
    assert output.count("  infra") == 1


def test_a_device_that_others_compute_on_is_left_to_them(machine: TwoGpus) -> None:
    machine.declare("a")
    uuids = [gpu.uuid for gpu in machine.gpus]
    machine.has(f"user {uuids[0]} 4242")
    second = machine.gpus[1]
    with machine.kabuild(*BUILD) as process:
        machine.begun(second)
        second.release()
        code, output = ended(process)

    assert code == 0, output
    assert "cuda:0 is busy: process 4242 computes on it; this build goes on with cuda:1" in output


def test_when_others_compute_on_all_devices_nothing_is_judged(machine: TwoGpus) -> None:
    machine.declare("a")
    machine.has("\n".join(f"user {gpu.uuid} 4242" for gpu in machine.gpus))
    with machine.kabuild(*BUILD) as process:
        code, output = ended(process)

    assert code == 36
    assert "cuda:1 is busy: process 4242 computes on it" in output


def test_doctor_and_info_tell_which_devices_there_are_and_who_has_them(machine: TwoGpus) -> None:
    machine.declare("a")
    first, second = machine.gpus
    with machine.kabuild("build", "//t:a", "--platform=cuda", "--devices=0") as builder:
        machine.begun(first)
        machine.has(f"user {second.uuid} 4242")
        with machine.kabuild("doctor", "--json") as doctor:
            findings = {item["name"]: item for item in json.loads(ended(doctor)[1])}
        first.release()
        ended(builder)
    with machine.kabuild("info", "devices") as info:
        named = ended(info)[1]

    assert findings["NVIDIA GPU"]["found"] == "2, 2 to judge on with --platform=cuda"
    assert findings["cuda:0"]["found"] == (
        "NVIDIA H200, sm_90, 143771 MiB, driver 580.159.04, runtime 13.0, "
        f"sm 1980 MHz, memory 2619 MHz, at most 700 W; in use by process {builder.pid}"
    )
    assert findings["cuda:1"]["state"] == "warning"
    assert findings["cuda:1"]["found"].endswith("compute on it: 4242")
    assert named == "cuda:0 (NVIDIA H200), cuda:1 (NVIDIA H200)\n"


@pytest.mark.parametrize(
    ("flags", "code", "said"),
    [
        (("--platform=cuda", "--devices=0,7"), 2, "--devices: no device cuda:7"),
        (("--platform=cuda", "--devices=x"), 2, "must be device numbers, got 'x'"),
        (("--devices=0",), 2, "--devices: platform cpu has no numbered devices"),
        (("--platform=cuda:sm_80",), 36, "cuda:0 is sm_90, cuda:1 is sm_90"),
        (("--platform=cuda:sm_80", "--devices=1"), 36, "cuda:1 is sm_90"),
        (("--platform=rocm",), 36, "no rocm device on this machine: /dev/kfd is missing"),
    ],
)
def test_devices_that_cannot_be_had_are_said_clearly(
    machine: TwoGpus, flags: tuple[str, ...], code: int, said: str
) -> None:
    if "rocm" in flags[0] and Path("/dev/kfd").exists():
        pytest.skip("there is an AMD device")
    machine.declare("a")
    with machine.kabuild("build", "//t:all", *flags) as process:
        got, output = ended(process)

    assert (got, said in output) == (code, True), output
