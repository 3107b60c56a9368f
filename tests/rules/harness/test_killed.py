"""A runner that is killed as memory runs out is judged only where it had much of it."""

# mypy: allow-untyped-defs, allow-untyped-calls

import mmap
import os
import time

import pytest

from runners import killed  # isort: skip
from runners.killed import MODEST_BYTES, Death  # isort: skip
from base.program import MachineFault  # isort: skip
from terms.reasons import Reason  # isort: skip

LENT = 8 << 30


def fault(monkeypatch, death, before, after):
    monkeypatch.setattr(killed, "kills", lambda: after)
    return killed.fault(
        death, before=before, lent_bytes=LENT, processor_limit=900, doing="in a batch", said=""
    )


@pytest.mark.parametrize("peak", [1 << 20, LENT, LENT + MODEST_BYTES])
def test_others_that_used_up_the_memory_are_the_machines_fault(monkeypatch, peak):
    with pytest.raises(MachineFault, match=f"killed a runner in a batch, which had {peak >> 20} "):
        fault(monkeypatch, Death(peak), 3, 4)


def test_a_runner_with_much_memory_is_out_of_it(monkeypatch):
    found = fault(monkeypatch, Death(LENT + MODEST_BYTES + 1), 3, 4)

    assert found.reason is Reason.OUT_OF_MEMORY


def test_memory_that_is_in_no_peak_counts_too(monkeypatch):
    """Shared memory stays when it is unmapped."""
    found = fault(monkeypatch, Death(1 << 20, touched_bytes=LENT + MODEST_BYTES + 1), 3, 4)

    assert found.reason is Reason.OUT_OF_MEMORY


HIDDEN = 64 << 20


def hides_memory() -> None:
    memory = mmap.mmap(-1, HIDDEN)
    for at in range(0, HIDDEN, mmap.PAGESIZE):
        memory[at] = 1
        if at % (1 << 22) == 0:
            memory.madvise(mmap.MADV_DONTNEED)


def leaves_it_to_a_child() -> None:
    pid = os.fork()
    if pid == 0:
        hides_memory()
        os._exit(0)
    os.waitpid(pid, 0)


@pytest.mark.parametrize("work", [hides_memory, leaves_it_to_a_child])
def test_every_page_is_known(work):
    pid = os.fork()
    if pid == 0:
        work()
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    assert Death.bury(pid)[1].touched_bytes >= HIDDEN


@pytest.mark.parametrize("peak", [1 << 20, LENT + MODEST_BYTES + 1])
def test_no_candidate_that_kills_itself_blames_the_memory(monkeypatch, peak):
    found = fault(monkeypatch, Death(peak), 3, 3)

    assert found.reason is Reason.CRASH
    assert "although memory had not run out" in found.detail


def test_where_the_kernel_does_not_count_the_candidate_is_to_blame(monkeypatch):
    assert fault(monkeypatch, Death(1 << 20), None, None).reason is Reason.OUT_OF_MEMORY


@pytest.mark.parametrize(
    ("limit", "told"),
    [(2, "its own limit of 2 s of processor time"), (901, "its 900 s of processor time")],
)
def test_a_process_at_its_limit_of_time_is_late(monkeypatch, limit, told):
    """The kernel counts ticks there, so it may kill a little early."""
    found = fault(monkeypatch, Death(1 << 20, limit * 950_000_000, limit), 3, 4)

    assert found.reason is Reason.TIMEOUT
    assert told in found.detail


def test_the_dead_are_described():
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)

    status, death = Death.bury(pid)

    assert os.waitstatus_to_exitcode(status) == 7
    assert death.peak_bytes > 1 << 20
    assert 0 <= death.processor_ns < time.process_time_ns() + 10**9
    assert not death.at_its_limit


def test_this_kernel_counts():
    assert killed.kills() is not None
