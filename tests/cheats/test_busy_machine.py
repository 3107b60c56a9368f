"""A machine that others keep busy is nobody's fault, and hides nobody's lie."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.testkit.cli import CliWorkspace

from .candidates import Candidate, cheats, declare, twins

SPIN = "while True: pass"
TIMING = "budget_seconds = 3.0"
"""Nobody else has it, so nothing is recalled. In less, a batch would be as short as the noise."""


@contextmanager
def busy() -> Iterator[None]:
    """More programs that want to run than there are processors."""
    count = 2 * (os.cpu_count() or 1)
    hogs = [subprocess.Popen([sys.executable, "-c", SPIN]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


def _perf(workspace: CliWorkspace, candidate: Candidate) -> tuple[str, str]:
    """The verdict of a timing that nobody else has asked for, and its reason."""
    declare(workspace, candidate, TIMING)
    target = f"//{candidate.package}"
    assert workspace.run("test", target, "--gates=compile,correctness").code == 0
    with busy():
        ran = workspace.run("test", target, "--gates=compile,correctness,perf", "--json")
    found = ran.gate("perf")
    assert not found["cached"]
    return found["verdict"], found["reason"]


@pytest.mark.parametrize("name", ["reads_the_clock", "spins_a_helper"])
def test_an_honest_candidate_is_not_rejected(workspace: CliWorkspace, name: str) -> None:
    (honest,) = [twin for twin in twins("hip") if twin.name == name]

    assert _perf(workspace, honest)[0] in {"PASS", "INFRA"}


def test_a_liar_is_rejected_all_the_same(workspace: CliWorkspace) -> None:
    name = "stops_the_clock_while_it_works"
    (liar,) = [cheat for cheat in cheats("hip") if cheat.name == name]

    assert _perf(workspace, liar) == ("REJECTED", "CLOCK_MISMATCH")
