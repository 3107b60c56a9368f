"""CPU slots, and leases that processes share."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kabuild.base.errors import Reason, StoreError
from kabuild.model.action import Resources
from kabuild.scheduler import FileLeases
from kabuild.scheduler.resources import Slots

REPOSITORY = Path(__file__).parents[3]
HOLD = (
    "import sys; from pathlib import Path; from kabuild.scheduler import FileLeases\n"
    "print(FileLeases(Path(sys.argv[1])).acquire('gpu:0'), flush=True); sys.stdin.read()\n"
)


@pytest.mark.parametrize(
    ("cpus", "taken"), [(1, (0,)), (2, (0, 1)), (0, (0, 1, 2)), (9, (0, 1, 2))]
)
def test_slots_by_what_is_wanted(cpus: int, taken: tuple[int, ...]) -> None:
    """0 is all; more than there are is all as well, or the action could never run."""
    assert Slots(3).take(Resources(cpus)) == taken


def test_slots_are_never_handed_out_twice() -> None:
    slots = Slots(2)
    first = slots.take(Resources(1))
    assert first is not None
    assert slots.take(Resources(2)) is None
    assert slots.take(Resources(0)) is None
    assert slots.take(Resources(1)) == (1,)
    assert slots.take(Resources(1)) is None

    slots.give_back(first)
    assert slots.take(Resources(1)) == first


def test_a_build_needs_a_slot() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Slots(0)


def test_a_lease_is_exclusive_across_processes_and_names_its_holder(tmp_path: Path) -> None:
    leases = FileLeases(tmp_path / "leases")
    assert not leases.is_held("gpu:0")
    assert not (tmp_path / "leases").exists(), "who only asks leaves nothing"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "leases")],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert other.stdout
        assert other.stdout.readline() == "True\n"

        assert not leases.acquire("gpu:0")
        assert leases.is_held("gpu:0")
        assert leases.holder("gpu:0") == f"process {other.pid}"
        assert leases.acquire("gpu:1"), "another device is free"
        other.kill()

    assert not leases.is_held("gpu:0")
    assert leases.acquire("gpu:0"), "the kernel frees what a dead process held"
    assert leases.holder("gpu:0") == f"process {os.getpid()}"


def test_a_released_lease_is_free_although_a_child_inherited_it(tmp_path: Path) -> None:
    """A zygote forked while the lease was held has the file open, too."""
    leases = FileLeases(tmp_path)
    leases.acquire("gpu")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(read, 1)
        os._exit(0)
    leases.release("gpu")

    assert FileLeases(tmp_path).acquire("gpu")
    os.write(write, b"x")
    os.waitpid(child, 0)


def test_a_lease_directory_that_cannot_be_made_is_said_clearly(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StoreError) as caught:
        FileLeases(tmp_path / "file" / "leases").acquire("gpu")
    assert caught.value.reason is Reason.STORE_UNWRITABLE
