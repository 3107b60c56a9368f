"""The page that a gate is opened with: two processes, one ticket, no message."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import os
import threading
import time

import pytest

from gpu.gate_page import ENDED, IDLE, OPEN, WORDS, GatePage, RunnerPage  # isort: skip
from pyrunner_device.gate import shape  # isort: skip


@pytest.fixture
def pages():
    judge = GatePage()
    yield judge, RunnerPage(os.dup(judge.fd))
    judge.close()


def word(page, place):
    return int.from_bytes(page.memory[4 * place : 4 * place + 4], "little")


def test_a_batch_is_opened_by_its_own_ticket(pages):
    judge, runner = pages

    first = judge.shut()
    assert word(runner, OPEN) != first
    judge.open()
    assert word(runner, OPEN) == first
    second = judge.shut()
    assert word(runner, OPEN) != second


def test_the_runner_finds_the_kernels_behind_the_words(pages):
    _, runner = pages

    text = runner.kernels()
    assert text.endswith(b"\0")
    for name in (b".entry blocker(", b".entry ended("):
        assert name in text
    assert runner.memory[:WORDS].count(0) == WORDS


def test_the_judge_sees_the_answer_when_it_is_written(pages):
    judge, runner = pages
    ticket = judge.shut()
    written = []

    def answer():
        time.sleep(0.05)
        written.append(time.monotonic_ns())
        runner.idle(ticket)

    started = judge.open()
    thread = threading.Thread(target=answer)
    thread.start()
    seen = judge.await_word(IDLE, 5.0, lambda: False)
    thread.join()

    assert started.ns < written[0] <= seen.ns
    assert seen.ns - written[0] < 1_000_000_000  # at once, on a machine that does other things


def test_an_answer_to_an_earlier_batch_is_none(pages):
    judge, runner = pages
    runner.idle(judge.shut())
    judge.shut()

    before = time.monotonic_ns()
    judge.await_word(IDLE, 0.05, lambda: False)
    assert time.monotonic_ns() - before >= 50_000_000


def test_a_runner_that_speaks_instead_is_heard(pages):
    judge, _ = pages
    judge.shut()

    before = time.monotonic_ns()
    judge.await_word(ENDED, 60.0, lambda: True)
    assert time.monotonic_ns() - before < 10_000_000_000


def test_nobody_can_resize_the_page(pages):
    judge, _ = pages

    with pytest.raises(PermissionError):
        os.ftruncate(judge.fd, 0)


@pytest.mark.parametrize(
    ("threads", "most", "block", "each"),
    [(2048, 1024, 1024, 2), (1536, 1024, 768, 2), (1024, 1024, 1024, 1), (1536, 512, 512, 3)],
)
def test_the_blocker_leaves_no_thread_free(threads, most, block, each):
    known = {39: threads, 1: most, 16: 132}

    assert shape(known.__getitem__) == (block, each * 132)
