"""Each known cheat is refused for its named reason, and its benign twin is accepted.

A cheat that does honest work once it is thwarted passes, and gains nothing.
"""

from __future__ import annotations

import pytest

from .candidates import GATES, HERE, Candidate, cheats, open_cheats, twins
from .conftest import Judged

pytestmark = pytest.mark.slow  # the first test waits for all of them to be judged
CHEATS = [*cheats("hip"), *cheats("triton")]
CHARGED = 1.5  # of a lie that claims at least twice the speed
GAIN = 2.0  # what equal programs cannot differ by, even on a busy machine
OPEN = [*open_cheats("hip"), *open_cheats("triton")]
TWINS = [*twins("hip"), *twins("triton")]


def _id(candidate: Candidate) -> str:
    return f"{candidate.language}-{candidate.name}"


@pytest.mark.parametrize("candidate", CHEATS, ids=_id)
def test_cheat_gains_nothing(judged: Judged, candidate: Candidate) -> None:
    expected = candidate.expected
    assert expected is not None

    found = judged.gate(candidate, expected.gate)
    if judged.busy and expected.reason == "CLOCK_MISMATCH" and found["verdict"] == "PASS":
        # What the load would excuse is charged all the same.
        assert float(found["summary"].partition("x")[0]) < CHARGED, found
        return
    assert (found["verdict"], found["reason"]) == (expected.verdict, expected.reason), found
    if expected.verdict == "PASS":
        assert float(found["summary"].partition("x")[0]) < GAIN, found
    else:
        assert expected.words in found["summary"]
    for gate in GATES[: GATES.index(expected.gate)]:
        assert judged.gate(candidate, gate)["verdict"] == "PASS"


@pytest.mark.parametrize("candidate", TWINS, ids=_id)
def test_benign_twin_is_accepted(judged: Judged, candidate: Candidate) -> None:
    for gate in candidate.gates:
        found = judged.gate(candidate, gate)
        assert found["verdict"] == "PASS", found


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
