"""Limits count the time that a machine grants: no pause and no neighbour uses them up."""

# mypy: allow-untyped-defs, allow-untyped-calls, allow-incomplete-defs

import math
import os
import socket
from typing import Any

import pytest

from tests.testkit.clock import FakeClock

from base.granted_time import PIECE_SECONDS, GrantedTime  # isort: skip
from base.program import CandidateFault  # isort: skip
from runners import channel, conversation  # isort: skip
from runners.channel import Channel, Silence  # isort: skip
from runners.conversation import Conversation  # isort: skip
from runners.protocol import Kind, Message  # isort: skip
from runners.warden import Counted  # isort: skip
from terms.reasons import Reason  # isort: skip

SECOND = 1_000_000_000


@pytest.fixture
def clock():
    return FakeClock(100.0)


@pytest.fixture
def granted(clock, monkeypatch):
    """The granted time of the judge's modules, on a clock that the test moves."""
    time = GrantedTime(clock.monotonic)
    for module in (channel, conversation):
        monkeypatch.setattr(module, "GRANTED", time)
    return time


def slept(granted, clock, seconds):
    sleep = granted.sleep()
    clock.advance(seconds)
    sleep.over()


def test_what_a_sleep_takes_beyond_its_piece_does_not_count(clock, granted):
    slept(granted, clock, 3600)
    assert granted.now() == pytest.approx(100 + PIECE_SECONDS)

    slept(granted, clock, PIECE_SECONDS / 2)
    assert granted.now() == pytest.approx(100 + 1.5 * PIECE_SECONDS)


def test_two_that_slept_through_one_pause_lose_it_once(clock, granted):
    sleeps = [granted.sleep(), granted.sleep()]
    clock.advance(10)
    for sleep in sleeps:
        sleep.over()

    assert granted.now() == pytest.approx(100 + PIECE_SECONDS)


@pytest.mark.parametrize(("starved", "counts"), [(0, 10), (4, 6), (10, 0), (1000, 0), (-5, 10)])
def test_a_period_gives_back_what_others_took(clock, granted, starved, counts):
    period = granted.period()
    clock.advance(10)
    period.withhold(starved)
    period.withhold(starved)  # that it is told again gives nothing

    assert granted.now() == pytest.approx(100 + counts)


def test_a_pause_and_a_wait_at_the_same_time_are_lost_once(clock, granted):
    period = granted.period()
    slept(granted, clock, 8)
    clock.advance(2)
    period.withhold(5)

    assert granted.now() == pytest.approx(100 + PIECE_SECONDS + 2)


def counted(main_ran=0.0, main_waited=0.0, sandbox=0.0):
    numbers = (main_ran, sandbox, main_waited, main_waited, sandbox)
    return Counted(*(int(number * SECOND) for number in numbers))


@pytest.mark.parametrize(
    ("spent", "seconds"),
    [
        (counted(main_ran=1, main_waited=9, sandbox=1), 9),  # a neighbour has nine tenths
        (counted(main_ran=0, main_waited=10, sandbox=10), 0),  # its own thread spins
        (counted(main_ran=0.1, main_waited=9.9, sandbox=40), 0),  # its own threads, everywhere
        (counted(main_ran=0.1, main_waited=9.9, sandbox=5.1), 4.9),
        (counted(), 0),  # it sleeps
    ],
)
def test_nobody_is_starved_by_its_own_threads(spent, seconds):
    assert spent.starved_ns == pytest.approx(seconds * SECOND, abs=2)


class Busy:
    """A warden whose runner gets a share of a processor, and answers after a second of it."""

    def __init__(self, clock, runner, share, own_threads=0.0):
        self._clock, self._began = clock, clock.now
        self._runner, self._share, self._own = runner, share, own_threads
        self._answered = False

    def count(self):
        passed = self._clock.now - self._began
        ran, waited = self._share * passed, (1 - self._share) * passed
        if ran >= 1 and not self._answered:
            self._answered = True
            data = self._runner.recv(1 << 10)
            self._runner.send(Message(Kind.READY, Message.decode(data).nonce).encode())
        return counted(ran, waited, ran + self._own * passed)

    def thaw(self):
        pass

    def freeze(self):
        return None


def asked(monkeypatch, granted, clock, **how):
    """Ask a busy machine's runner something that may take two seconds."""
    control, runner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    warden: Any = Busy(clock, runner, **how)
    judge = Channel(control, os.open(os.devnull, os.O_RDONLY), 80)
    receive = Channel.receive

    def impatient(self, deadline, *, awake=False):
        try:
            return receive(self, -math.inf, awake=awake)  # what is there already
        except Silence:
            clock.advance(max(0.0, deadline - granted.now()))
            return receive(self, -math.inf, awake=awake)

    monkeypatch.setattr(Channel, "receive", impatient)
    try:
        return Conversation(judge, warden).ask(
            Kind.START, Kind.READY, seconds=2, doing="while it was loaded"
        )
    finally:
        runner.close()
        judge.close()


def test_a_runner_that_others_starve_has_its_time(monkeypatch, granted, clock):
    assert asked(monkeypatch, granted, clock, share=0.05).values is not None
    assert clock.now - 100 >= 20


@pytest.mark.parametrize(
    "how", [{"share": 0.0, "own_threads": 4.0}, {"share": 0.4, "own_threads": 0.6}]
)
def test_a_runner_that_starves_itself_is_late(monkeypatch, granted, clock, how):
    with pytest.raises(CandidateFault, match="no answer within 2 s") as caught:
        asked(monkeypatch, granted, clock, **how)

    assert caught.value.reason is Reason.TIMEOUT
    assert clock.now - 100 == pytest.approx(2)
