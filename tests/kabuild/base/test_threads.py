"""A thread is started only where there is room for it."""

from __future__ import annotations

import subprocess
import sys
import threading

from kabuild.base import threads
from tests.testkit.cli import REPOSITORY

FILL = """
import mmap, resource, sys, threading
from kabuild.base import threads
from kabuild.base.errors import InfraError

with open("/proc/self/statm") as file:
    size = int(file.read().split()[0]) * mmap.PAGESIZE
limit = size + int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try:
    threads.start(threading.Thread(target=print, args=("it runs",)))
except InfraError as error:
    print(error.reason.value, error.message, error.hint, sep="; ")
"""


def filled(left: int) -> str:
    """What a process says that has ``left`` bytes of address space for a thread."""
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(left)],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.strip()


def test_a_thread_runs() -> None:
    ran = threading.Event()
    thread = threading.Thread(target=ran.set, daemon=True)

    threads.start(thread)

    assert ran.wait(120)


def test_without_room_it_is_an_error_and_no_endless_wait() -> None:
    """With every room that is a little more or less than a stack."""
    refused = "no resources; no thread can be started: there is no room for its stack; "
    for left in range(8 << 20, 12 << 20, 1 << 19):
        assert filled(left) == f"{refused}see 'ulimit -v' and 'ulimit -d'", left
    assert filled(80 << 20) == "it runs"
