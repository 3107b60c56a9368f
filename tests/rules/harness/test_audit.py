"""The audit: what explains a batch's time, what disproves it, and what a lie costs."""

# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import os

import pytest
from base.program import Batch
from perf.audit import Charge, Clock

MS = 1_000_000


def clock():
    made = Clock(tolerance_ns=2 * MS, share=0.1)
    for wall in (300_000, 310_000, 320_000):
        made.calibrate(Batch((), 0, wall))
    return made


def batch(reported, wall, thread=0.0, process=0.0, waited=0.0):
    return Batch((), *(int(ms * MS) for ms in (reported, wall, thread, process, waited)))


@pytest.mark.parametrize(
    "honest",
    [
        batch(10, 10.4, 10.1, 10.1),
        batch(10, 90, 10.1, 10.1),  # others kept the judge or the runner waiting
        batch(90, 91, 10.1, 10.1),  # others kept the call itself waiting
        batch(10, 10.4, 10.1, 10.1 * (os.cpu_count() or 1)),
        batch(10, 10.4),  # a kernel that does not count
    ],
)
def test_no_load_makes_an_honest_batch_impossible(honest):
    assert clock().impossible(honest) == ""
    assert clock().hidden(honest) == ""


@pytest.mark.parametrize(("reported", "wall"), [(0, 10), (11, 10)])
def test_what_cannot_be_is_no_noise(reported, wall):
    assert "took 10 ms by the judge's clock" in clock().impossible(batch(reported, wall))


@pytest.mark.parametrize(
    ("lie", "words"),
    [
        (batch(5, 10.4, 10, 10), "its main thread ran for 10 ms"),
        (batch(5, 200, 10, 10), "its main thread ran for 10 ms"),
        (batch(0.6, 1.6, 1.2, 1.2), "its main thread ran for 1.2 ms"),
        (batch(5, 40, 1, 100 * (os.cpu_count() or 1)), "it ran for"),
    ],
)
def test_what_the_kernel_counts_disproves_a_lie_under_any_load(lie, words):
    audited = clock()
    audited.trust(batch(10, 300, 10.1, 10.1))

    assert words in audited.complaint(lie)


def test_what_the_baselines_thread_does_besides_is_allowed_to_the_candidate():
    audited = clock()
    audited.trust(batch(10, 12, 11, 11))

    assert audited.hidden(batch(5, 8, 7.9, 7.9)) == ""
    assert "ran for 8.1 ms" in audited.hidden(batch(5, 8.5, 8.1, 8.1))


def test_noise_of_the_baseline_is_allowed_to_the_candidate():
    audited = clock()
    late = batch(10, 30)
    assert "19.7 ms are unexplained" in audited.complaint(late)

    audited.trust(batch(10, 31))
    assert audited.complaint(late) == ""


@pytest.mark.parametrize(
    ("late", "excused"),
    [
        (batch(10, 30, 10, 10, 18.5), True),  # others had the processors
        (batch(10, 30, 10, 20, 28.5), True),  # and its second thread cannot have been all of them
        (batch(10, 30, 10, 10, 15), False),  # 4.7 ms are left
        (batch(10, 30, 10, 20, 18.5), False),  # its own thread kept it waiting
        (batch(10, 30, 1, 19, 30), False),
        (batch(10, 30), False),  # a kernel that does not count
        (batch(5, 30, 10, 10, 25), False),  # what it ran itself nobody else did
        (batch(31, 30, 10, 10, 25), False),
    ],
)
def test_others_on_the_processors_excuse_what_the_kernel_counts(late, excused):
    audited = clock()

    assert audited.complaint(late) != ""
    assert (audited.complaint(late, busy=True) == "") == excused


@pytest.mark.parametrize(
    ("own", "pays"),
    [
        ([0, 0, 0, 0], [0, 0, 0, 0]),
        ([5, 5, 5, 5], [5, 5, 5, 5]),  # always
        ([5, 0, 0, 0], [5, 0, 0, 0]),  # now and then
        ([-1, -1, -1, -1], [0, 0, 0, 0]),  # nobody is paid
    ],
)
def test_unexplained_time_is_paid_whenever_it_comes(own, pays):
    charge = Charge.settle(own, [0, 0, 0])

    assert [charge.of(value, beside=[0, 0]) for value in own] == pays


def test_what_the_baseline_varies_by_costs_nobody():
    charge = Charge.settle([0, 0, 3], [-1, 0, 1])

    assert [charge.of(value, beside=[0, 1]) for value in (0, 3, 9)] == [0, 0, 6]


@pytest.mark.parametrize(("beside", "pays"), [([7, 8], 0), ([8, 0], 6), ([0, 8], 6), ([4, 5], 2)])
def test_what_holds_up_all_of_a_round_costs_nobody(beside, pays):
    charge = Charge.settle([0, 0, 9], [-1, 0, 1])

    assert charge.of(9, beside=beside) == pays
