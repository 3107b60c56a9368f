"""The runtime in processes that crash, fork, exit, or have little room."""

from __future__ import annotations

import signal

import pytest

from tests.toolchains.hip.support import InProcess, Load

LAUNCH_FAILURE = 719


def test_trap_fails_the_launch_until_reset(load: Load, in_process: InProcess) -> None:
    faults = load("faults").path
    done = in_process(f"""
k = ctypes.CDLL({str(faults)!r})
print(k.launch_trap(64, 7), rt.hipGetLastError(), k.launch_trap(64, 99), rt.hipDeviceReset(),
      k.launch_trap(64, 99))
""")
    assert done.stdout.split() == ["719", "719", "719", "0", "0"]
    assert "__trap()" in done.stderr
    assert "thread (7,0,0)" in done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("call", ["launch_overflow(data, 64, 1000)", "launch_large_frame(data)"])
def test_stack_overflow_is_named(
    load: Load, in_process: InProcess, workers: str, call: str
) -> None:
    faults = load("faults").path
    code = f"k = ctypes.CDLL({str(faults)!r})\ndata = (ctypes.c_int * 64)()\nk.{call}\n"
    done = in_process(code, KABUILD_CPU_WORKERS=workers)
    assert done.returncode == -signal.SIGSEGV
    assert "stack overflow" in done.stderr


def test_deep_enough_recursion_is_no_overflow(load: Load, in_process: InProcess) -> None:
    code = f"k = ctypes.CDLL({str(load('faults').path)!r})\ndata = (ctypes.c_int * 64)()\n"
    done = in_process(code + "print(k.launch_overflow(data, 64, 40))")
    assert done.stdout.strip() == "0", done.stderr


def test_a_program_s_own_handler_is_left_alone(load: Load, in_process: InProcess) -> None:
    code = f"""
import faulthandler
faulthandler.enable()
k = ctypes.CDLL({str(load("faults").path)!r})
k.launch_large_frame((ctypes.c_int * 64)())
"""
    done = in_process(code)
    assert done.returncode == -signal.SIGSEGV
    assert "Segmentation fault" in done.stderr


@pytest.mark.parametrize(("launches", "written"), [("skip", 0), ("run", 7)])
def test_a_judge_can_leave_launches_out(
    load: Load, in_process: InProcess, launches: str, written: int
) -> None:
    """Results are what kernels compute: without them an output stays as it was."""
    code = f"""
k = ctypes.CDLL({str(load("launch").path)!r})
out = (ctypes.c_float * 7)()
print(k.launch_fill(out, ctypes.c_float(3), 7, None), sum(value == 3 for value in out))
"""
    done = in_process(code, KABUILD_CPU_LAUNCHES=launches)
    assert done.stdout.split() == ["0", str(written)], done.stderr


FILL = """
k = ctypes.CDLL({path!r})
def fill():
    out = (ctypes.c_float * 100000)()
    assert k.launch_fill(out, ctypes.c_float(3), 100000, None) == 0
    return set(out)
"""


def test_fork_before_and_after_the_first_launch(load: Load, in_process: InProcess) -> None:
    code = (
        FILL.format(path=str(load("launch").path))
        + """
def in_child():
    pid = os.fork()
    if pid == 0:
        os._exit(0 if fill() == {3.0} else 1)
    return os.waitpid(pid, 0)[1]
print(in_child(), fill(), in_child(), in_child())
"""
    )
    done = in_process(code, KABUILD_CPU_WORKERS="3")
    assert done.stdout.strip() == "0 {3.0} 0 0", done.stderr


@pytest.mark.parametrize("workers", ["1", "2", "7", "", "many", "0"])
def test_number_of_workers(load: Load, in_process: InProcess, workers: str) -> None:
    code = (
        FILL.format(path=str(load("launch").path))
        + """
value = ctypes.c_int()
rt.hipcpu_device_attribute(ctypes.byref(value), 63, 0, 64)
fill()
print(value.value, len(os.listdir("/proc/self/task")), len(os.sched_getaffinity(0)))
"""
    )
    done = in_process(code, KABUILD_CPU_WORKERS=workers)
    count, threads, usable = map(int, done.stdout.split())
    assert threads == count
    assert count == (int(workers) if workers in {"1", "2", "7"} else usable)
    assert ("KABUILD_CPU_WORKERS" in done.stderr) == (workers in {"many", "0"})


def test_no_threads_allowed_means_one_worker(load: Load, in_process: InProcess) -> None:
    """Where the sandbox refuses threads, the caller does all the work."""
    code = (
        FILL.format(path=str(load("launch").path))
        + """
import resource
os.setresuid(65534, 65534, 65534)
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
print(fill(), len(os.listdir("/proc/self/task")))
"""
    )
    done = in_process(code, KABUILD_CPU_WORKERS="4")
    assert done.stdout.strip() == "{3.0} 1", done.stderr


def test_no_memory_for_stacks_is_an_error(load: Load, in_process: InProcess) -> None:
    """A block of 1024 waiting threads wants 64 MiB of stacks."""
    code = f"""
import resource
k = ctypes.CDLL({str(load("barrier").path)!r})
data = (ctypes.c_int * 1024)()
resource.setrlimit(resource.RLIMIT_DATA, (60 << 20, 60 << 20))
print(k.launch_votes(data, 1024, 5))
"""
    done = in_process(code, KABUILD_CPU_WORKERS="1")
    assert done.stdout.strip() == str(LAUNCH_FAILURE), done.stderr
    assert "no memory for the stacks" in done.stderr


def test_launches_do_not_leak(load: Load, in_process: InProcess) -> None:
    code = f"""
k = ctypes.CDLL({str(load("barrier").path)!r})
data = (ctypes.c_int * 1024)()
def resident():
    return int(open("/proc/self/statm").read().split()[0])
for _ in range(20): k.launch_votes(data, 1024, 5)
before = resident()
for _ in range(300): k.launch_votes(data, 1024, 5)
print(resident() - before)
"""
    done = in_process(code)
    assert int(done.stdout) <= 1, done.stderr


def test_many_host_threads_may_launch(load: Load, in_process: InProcess) -> None:
    code = (
        FILL.format(path=str(load("launch").path))
        + """
import threading

results = []
threads = [threading.Thread(target=lambda: results.append(fill())) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(results == [{3.0}] * 8)
"""
    )
    done = in_process(code, KABUILD_CPU_WORKERS="2")
    assert done.stdout.strip() == "True", done.stderr
