"""A system call that no signal interrupts is the candidate's, and a runner has next to none."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs

import contextlib
import ctypes
import mmap
import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from run_support import QUICK, fault_of, is_doubled, native, run_doubling

from tests.kabuild.sandbox.test_seccomp import header_numbers

from runners import system_calls, warden  # isort: skip
from runners.conversation import Conversation  # isort: skip
from runners.channel import Channel  # isort: skip
from runners.launcher import Launcher  # isort: skip
from runners.lockdown import assemble  # isort: skip
from runners.warden import Warden  # isort: skip
from base.program import CandidateFault  # isort: skip
from terms.reasons import Reason  # isort: skip

PAGES = 100_000_000
CALLS = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static void twice(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
}
// Whether a call fails with an error; 0 is success.
#define GIVES(error, call) (errno = 0, (call) == 0 ? (error) == 0 : errno == (error))
#define MUST(condition) if (!(condition)) return __LINE__

int makes_long_calls(const float* x, float* y, int64_t n, void* stream) {
  (void)stream;
  char* page = mmap(0, 1 << 22, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int ends[2], file = open("/tmp/file", O_RDWR | O_CREAT, 0600);
  MUST(pipe(ends) == 0 && file >= 0);
  struct { void* base; size_t size; } part = {page, 4096};
  MUST(GIVES(ENOSYS, syscall(SYS_mbind, page, 1 << 22, 0, 0, 0, 2)));
  MUST(GIVES(ENOSYS, syscall(SYS_set_mempolicy, 0, 0, 0)));
  MUST(syscall(SYS_process_madvise, -1, &part, 1, MADV_PAGEOUT, 0) < 0);
  MUST(GIVES(ENOSYS, mlockall(MCL_CURRENT)));
  MUST(GIVES(ENOSYS, mlock(page, 4096)));
  MUST(GIVES(ENOSYS, vmsplice(ends[1], (struct iovec*)&part, 1, 0)));
  MUST(GIVES(ENOSYS, splice(ends[0], 0, ends[1], 0, 1, 0)));
  MUST(GIVES(ENOSYS, tee(ends[0], ends[1], 1, 0)));
  MUST(GIVES(ENOSYS, syscall(SYS_sendfile, file, file, 0, 1)));
  MUST(GIVES(ENOSYS, copy_file_range(file, 0, file, 0, 1, 0)));
  MUST(GIVES(ENOSYS, syscall(SYS_personality, 0xFFFFFFFF)));
  MUST(GIVES(ENOSYS, syscall(SYS_membarrier, 1, 0, 0)));
  MUST(GIVES(ENOSYS, syscall(SYS_io_setup, 1, page)));
  MUST(GIVES(ENOSYS, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 8, page)));
  MUST(GIVES(ENOSYS, syscall(SYS_setpriority, 0, 0, 19)));
  MUST(GIVES(ENOSYS, syscall(SYS_sched_setscheduler, 0, SCHED_IDLE, page)));
  MUST(GIVES(ENOSYS, syscall(SYS_cachestat_, file, page, page, 0)));
  MUST(GIVES(ENOSYS, syscall(9999)));
  MUST(GIVES(EINVAL, madvise(page, 1 << 22, 25)));  // MADV_COLLAPSE
  MUST(GIVES(EINVAL, madvise(page, 1 << 22, MADV_PAGEOUT)));
  MUST(GIVES(EINVAL, madvise(page, 1 << 22, MADV_MERGEABLE)));
  MUST(GIVES(EINVAL, prctl(62, 1, 0, 0, 0)));  // PR_SCHED_CORE
  MUST(GIVES(EINVAL, prctl(PR_SET_SECCOMP, 2, page)));
  MUST(GIVES(EINVAL, prctl(PR_SET_DUMPABLE, 0)));
  MUST(GIVES(ENOTTY, ioctl(file, 0xC020660B, page)));  // FS_IOC_FIEMAP
  MUST(GIVES(EOPNOTSUPP, fallocate(file, 0, 0, 1 << 20)));
  const long thread = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_VFORK;
  MUST(GIVES(EINVAL, syscall(SYS_clone, thread, page + 4096, 0, 0, 0)));
  // What waits for disks succeeds at once, and does not wait.
  sync();
  MUST(GIVES(0, fsync(file)));
  MUST(GIVES(0, msync(page, 4096, MS_SYNC)));
  MUST(GIVES(0, syncfs(file)));
  MUST(GIVES(0, madvise(page, 1 << 22, MADV_WILLNEED)));
  MUST(GIVES(0, madvise(page, 1 << 22, MADV_DONTNEED)));
  MUST(GIVES(0, prctl(PR_SET_NAME, "a name")));
  twice(x, y, n);
  return 0;
}
int moves_pages(const float* x, float* y, int64_t n, void* stream) {
  (void)stream;
  syscall(SYS_move_pages, 0, 400000000ul, x, 0, y, 0);
  twice(x, y, n);
  return 0;
}
""".replace("SYS_cachestat_", "451")
"""Each entry returns 0, or the line of what is not as it should be."""


def test_numbers_are_those_of_linux():
    for machine in ("x86_64", "aarch64"):
        known = header_numbers(machine)
        for calls in vars(system_calls).values():
            if isinstance(calls, system_calls.Calls):
                for name, number in calls.numbers(machine).items():
                    assert known[name] == number, (name, machine)


def test_no_runner_is_refused_a_filter_for_its_length():
    for machine in ("x86_64", "aarch64"):
        for on_device in (True, False):
            code = assemble(machine, on_device=on_device, children=on_device)
            assert len(code) // 8 < 1024, "what the native runner takes"


def test_what_cannot_be_stopped_is_absent():
    with Launcher.start() as launcher:
        (inputs, batch), *_ = run_doubling(launcher, native(CALLS, "makes_long_calls"))
        fault = fault_of(launcher, native(CALLS, "moves_pages"), QUICK)

    assert is_doubled(inputs, batch)
    assert fault.reason is Reason.FORBIDDEN_SYSCALL


def starts_what_never_begins(fifo: str) -> None:
    """Wait in vfork, which ends with a signal that kills, and with no other."""
    actions = [(os.POSIX_SPAWN_OPEN, 0, fifo, os.O_RDONLY, 0)]
    os.posix_spawn("/bin/true", ["true"], {}, file_actions=actions)


def moves_pages(_: str) -> None:
    """Wait in move_pages, which ends with no signal at all, for some seconds."""
    memory = mmap.mmap(-1, 8 * PAGES)
    address = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    number = system_calls.FATAL.numbers(os.uname().machine)["move_pages"]
    ctypes.CDLL(None).syscall(number, 0, ctypes.c_ulong(PAGES), address, None, address, 0)


@pytest.fixture
def alone() -> Iterator[set[int]]:
    """A processor that this test leaves to its worker: the kernel may not share it in a call."""
    first, *others = every = sorted(os.sched_getaffinity(0))
    if not others:
        pytest.skip("needs two processors")
    os.sched_setaffinity(0, others)
    yield {first}
    os.sched_setaffinity(0, every)


def wait_until_in_call(worker: int) -> None:
    """Return once the worker cannot be interrupted, or has computed in the kernel for 0.1 s."""
    for _ in range(6000):
        state, *fields = Path(f"/proc/{worker}/stat").read_text().rpartition(") ")[2].split()
        if state == "D" or int(fields[11]) >= os.sysconf("SC_CLK_TCK") / 10:
            return
        time.sleep(0.01)
    pytest.fail(f"process {worker} did not begin its call within a minute")


@pytest.mark.parametrize(("work", "dies"), [(starts_what_never_begins, True), (moves_pages, False)])
def test_living_warden_that_cannot_stop_a_runner_blames_it(
    monkeypatch, tmp_path, work, dies, alone
):
    os.mkfifo(fifo := str(tmp_path / "fifo"))
    monkeypatch.setattr(warden, "_STOP_SECONDS", 0.3)
    control, its_control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    orders, its_orders = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    begun, begins = os.pipe()
    guard = os.fork()
    if guard == 0:
        orders.close()
        worker = os.fork()
        if worker == 0:
            os.sched_setaffinity(0, alone)
            os.write(begins, str(os.getpid()).encode())
            work(fifo)
        else:
            warden.supervise(worker, its_orders.fileno())
        os._exit(0)
    conversation = Conversation(Channel(control, os.dup(2), 80), Warden(orders))
    its_control.close()
    its_orders.close()
    worker = int(os.read(begun, 16))
    wait_until_in_call(worker)
    os.close(begun)
    os.close(begins)

    with pytest.raises(CandidateFault, match="could not be stopped") as caught:
        conversation.freeze("in a batch")
    assert caught.value.reason is Reason.TIMEOUT
    if dies:
        conversation.end()
    else:
        with pytest.raises(CandidateFault, match="could not be stopped"):
            conversation.end()
    os.waitpid(guard, 0)
    with contextlib.suppress(ProcessLookupError):
        os.kill(worker, signal.SIGKILL)  # it stays stopped otherwise
    if dies:
        os.close(os.open(fifo, os.O_WRONLY))  # what it would have started begins, and ends
