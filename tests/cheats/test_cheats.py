"""Each known cheat is refused for its named reason, and its benign twin is accepted.

A cheat that does honest work once it is thwarted passes, and gains nothing.
"""

from __future__ import annotations

import pytest

from .candidates import GATES, Candidate, cheats, twins
from .conftest import Judged

CHEATS = [*cheats("hip"), *cheats("triton")]
GAIN = 2.0  # what equal programs cannot differ by, even on a busy machine
TWINS = [*twins("hip"), *twins("triton")]


def _id(candidate: Candidate) -> str:
    return f"{candidate.language}-{candidate.name}"


@pytest.mark.parametrize("candidate", CHEATS, ids=_id)
def test_cheat_gains_nothing(judged: Judged, candidate: Candidate) -> None:
    expected = candidate.expected
    assert expected is not None

    found = judged.gate(candidate, expected.gate)
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


def test_every_cheat_has_a_twin() -> None:
    known = {(twin.language, twin.name) for twin in TWINS}

    assert {(cheat.language, cheat.twin) for cheat in CHEATS} <= known
    assert len(CHEATS) >= 40
