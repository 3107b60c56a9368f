"""Each known cheat is refused for its named reason, and its benign twin is accepted.

A cheat that does honest work once it is thwarted passes, and gains nothing.
"""

from __future__ import annotations

import pytest

from .candidates import GAIN, GATES, HERE, Candidate, cheats, open_cheats, twins
from .conftest import Judged, gain

pytestmark = pytest.mark.slow  # the first test waits for all of them to be judged
CHEATS = [*cheats("hip"), *cheats("triton")]
CHARGED = 1.5  # of a lie that claims at least twice the speed
TIMINGS = 3  # of a cheat that was not named at once
OPEN = [*open_cheats("hip"), *open_cheats("triton")]
TWINS = [*twins("hip"), *twins("triton")]


def _id(candidate: Candidate) -> str:
    return f"{candidate.language}-{candidate.name}"


def _unnamed(judged: Judged, candidate: Candidate) -> bool:
    """Whether noise has kept a lie about time from being named; it must have paid all the same."""
    found = judged.gate(candidate, "perf")
    if not candidate.lies_about_time or found["verdict"] != "PASS":
        return False
    assert gain(found) < CHARGED
    return True


def _lucky(judged: Judged, candidate: Candidate) -> bool:
    """Whether a cheat seems to have gained, by what others did to the machine meanwhile."""
    found = judged.gate(candidate, "perf")
    return found["verdict"] == "PASS" and gain(found) >= GAIN and judged.busy(candidate)


@pytest.mark.parametrize("candidate", CHEATS, ids=_id)
def test_cheat_gains_nothing(judged: Judged, candidate: Candidate) -> None:
    expected = candidate.expected
    assert expected is not None

    if expected.gate == "perf":
        for _ in range(TIMINGS - 1):
            if _unnamed(judged, candidate) or _lucky(judged, candidate):
                judged.again(candidate)
        if _unnamed(judged, candidate) and judged.busy(candidate):
            return
    found = judged.gate(candidate, expected.gate)
    assert (found["verdict"], found["reason"]) in candidate.refusals, found
    if found["verdict"] == "PASS":
        assert gain(found) < GAIN, found
    elif found["reason"] == expected.reason:
        assert expected.words in found["summary"]
    for gate in GATES[: GATES.index(expected.gate)]:
        assert judged.gate(candidate, gate)["verdict"] == "PASS"


@pytest.mark.parametrize("candidate", TWINS, ids=_id)
def test_benign_twin_is_accepted(judged: Judged, candidate: Candidate) -> None:
    for gate in candidate.gates:
        found = judged.gate(candidate, gate)
        assert found["verdict"] == "PASS", f"{found['reason']}: {found['detail']}"


@pytest.mark.parametrize("candidate", OPEN, ids=_id)
def test_what_still_works_is_admitted(judged: Judged, candidate: Candidate) -> None:
    """A cheat that no longer passes belongs with the others, and out of SECURITY.md."""
    for gate in candidate.gates:
        assert judged.gate(candidate, gate)["verdict"] == "PASS"
    assert f"`{candidate.name}`" in (HERE.parents[1] / "SECURITY.md").read_text()


def test_every_cheat_has_a_twin() -> None:
    known = {(twin.language, twin.name) for twin in TWINS}

    assert {(cheat.language, cheat.twin) for cheat in CHEATS} <= known
    assert len(CHEATS) >= 40


def test_the_page_on_security_counts_right() -> None:
    counted = f"{len(CHEATS)} cheats and {len(TWINS)} benign twins"

    assert counted in (HERE.parents[1] / "SECURITY.md").read_text()
