"""The judge's clock: what counts, what disproves a report, and what excuses one."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import pytest
from base.program import Batch
from perf.audit import Clock

MS = 1_000_000
EMPTY = 0.31  # ms


def clock():
    made = Clock(tolerance_ns=2 * MS, share=0.1)
    for wall in (300_000, 310_000, 320_000):
        made.calibrate(Batch((), 0, wall))
    return made


def batch(reported, wall, thread=0.0, process=0.0, waited=0.0):
    return Batch((), *(int(ms * MS) for ms in (reported, wall, thread, process, waited)))


@pytest.mark.parametrize("reported", [0.001, 5, 10, 10.31])
def test_a_report_changes_nothing_that_counts(reported):
    assert clock().counted_ns(batch(reported, 10.31)) == 10 * MS


def test_what_is_shorter_than_an_empty_batch_counts_as_one():
    assert clock().counted_ns(batch(0.01, 0.32)) == EMPTY * MS
    assert clock().trusted_ns(batch(0.01, 0.30)) == 0.01 * MS
    assert clock().even_ns(batch(0.01, 0.30)) == EMPTY * MS
    assert clock().even_ns(batch(9.9, 10.31)) == 10 * MS


@pytest.mark.parametrize(
    "honest",
    [
        batch(10, 10.4, 10.1, 10.1),
        batch(10, 90, 10.1, 10.1),  # others kept the judge or the runner waiting
        batch(90, 91, 10.1, 10.1),  # others kept the call itself waiting
        batch(10, 10.4, 10.1, 10.1 * 64),
        batch(10, 40, 10.1, 200),  # threads of its own go on until the freeze
        batch(10, 10.4),  # a kernel that does not count
    ],
)
def test_no_load_makes_an_honest_batch_impossible(honest):
    assert clock().impossible(honest) == ""


@pytest.mark.parametrize(("reported", "wall"), [(0, 10), (11, 10)])
def test_what_cannot_be_is_no_noise(reported, wall):
    assert "took 10 ms by the judge's clock" in clock().impossible(batch(reported, wall))


QUIET = [batch(10, 10.4, 10.1)] * 6
HIDES = batch(5, 10.4, 10)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ([HIDES] * 6, "its main thread ran for 10 ms"),
        ([batch(5, 200, 10, 10, 190)] * 6, "its main thread ran for 10 ms"),
        ([batch(0.6, 1.6, 1.2, 1.2)] * 6, "its main thread ran for 1.2 ms"),
        ([HIDES] * 7 + QUIET, "its main thread ran for"),  # in most batches
        ([HIDES] * 5 + QUIET, ""),  # an interrupt, or what gains nothing
        ([batch(10, 40, 10.1, 200, 29)] * 6, ""),  # threads of its own go on until the freeze
        ([batch(10, 10.4)] * 6, ""),  # a kernel that does not count
    ],
)
def test_what_the_kernel_counts_disproves_a_lie_under_any_load(own, words):
    said = clock().complaint(own, [*QUIET, batch(10, 300, 10.1, 10.1)])

    assert words in said
    assert bool(words) == bool(said)


@pytest.mark.parametrize(("thread", "refused"), [(7.9, False), (8.1, True)])
def test_what_the_baselines_thread_does_besides_is_allowed_to_the_candidate(thread, refused):
    said = clock().complaint([batch(5, 8, thread)] * 6, [batch(10, 12, 11)] * 6)

    assert (f"ran for {thread} ms" in said) == refused


@pytest.mark.parametrize(
    ("own", "trusted", "refused"),
    [
        (QUIET, QUIET, False),
        ([batch(10, 30)] * 6, QUIET, True),
        ([batch(10, 30)] * 7 + QUIET, QUIET, True),  # in most batches
        ([batch(10, 30)] * 5 + QUIET, QUIET, False),  # noise comes and goes
        ([batch(10, 30)] * 6, [*QUIET, batch(10, 31)], False),  # the baseline's is as bad
        ([batch(10, 30, waited=18.5)] * 6, QUIET, False),  # others had the processors
        ([batch(10, 30, 10, 40, 30)] * 6, QUIET, False),  # or its own threads: who knows
        ([batch(10, 30, waited=15)] * 6, QUIET, True),  # 4.7 ms are left
    ],
)
def test_a_lie_in_most_batches_is_named_unless_the_machine_explains_it(own, trusted, refused):
    said = clock().complaint(own, trusted)

    assert ("unexplained" in said) == refused
