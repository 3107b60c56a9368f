"""What a judge makes of a sanitizer's lines, whoever wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sanitize.findings import MOST, distinct, read_findings
from sanitize.places import Place, Places
from terms.reasons import Reason

# Line 1 of the laid-out source is lines 3 and 4 of the author's.
TABLE = {
    "schema": 1,
    "files": {
        "kernel.hip": {"name": "mine.hip", "lines": [[[1, 3, 1], [10, 4, 5]], [], [[1, 7, 3]]]}
    },
    "code": [[16, 0, 1, 12], [32, -1, 0, 0], [48, 0, 3, 1]],
}
PLACES = Places(TABLE)
RACE = "hipcpu-sanitizer DATA_RACE {} {} fill<float>; write by a, and read by b at {{other}}"


@pytest.mark.parametrize(
    ("places", "found"),
    [
        ("10", Place("mine.hip", 4, 5)),
        ("1f", Place("mine.hip", 4, 5)),
        ("at:kernel.hip:1:9", Place("mine.hip", 3, 1)),
        ("at:./kernel.hip:3:1", Place("mine.hip", 7, 3)),
        ("2a,30", Place("mine.hip", 7, 3)),
        ("at:hip/hipcpu/barrier.h:4:1,10", Place("mine.hip", 4, 5)),
        ("2a", None),
        ("0", None),
        ("at:kernel.hip:2:1", None),
        ("at:kernel.hip:99:1", None),
        ("at:kernel.hip:-1:1", None),
        ("at:kernel.hip:1", None),
        ("at:kernel.hip:²:1", None),
        ("nonsense", None),
        ("-20", None),
    ],
)
def test_a_place_is_the_authors_or_none(places: str, found: Place | None) -> None:
    """The first place that lies in the author's files counts."""
    assert PLACES.find(places) == found


def test_a_finding_has_both_places() -> None:
    (found,) = read_findings(RACE.format("10", "30"), PLACES)

    assert (found.kind, found.kernel) == (Reason.DATA_RACE, "fill<float>")
    assert str(found) == (
        "mine.hip:4:5: DATA_RACE in fill<float>: write by a, and read by b at mine.hip:7:3"
    )
    assert found.to_json()["other"] == "mine.hip:7:3"


def test_what_cannot_be_placed_is_said_all_the_same() -> None:
    (found,) = read_findings("hipcpu-sanitizer OUT_OF_BOUNDS 2a - -; read of 4 bytes", PLACES)

    assert str(found) == "somewhere: OUT_OF_BOUNDS: read of 4 bytes"


@pytest.mark.parametrize(
    "said",
    [
        "",
        "hello",
        "hipcpu-sanitizer PASS 10 - k; all is well",
        "hipcpu-sanitizer WRONG_RESULT 10 - k; not a kind of this gate",
        "hipcpu-sanitizer DATA_RACE 10 - k",
        "hipcpu-sanitizer DATA_RACE 10 - ; no kernel",
        "x hipcpu-sanitizer DATA_RACE 10 - k; text",
        "hipcpu-sanitizer DATA_RACE " + "1," * 200 + " - k; too many places",
        "hipcpu-sanitizer DATA_RACE 10 - k; " + "a" * 700,
    ],
)
def test_a_line_of_another_form_is_no_finding(said: str) -> None:
    """Whatever a kernel prints."""
    assert read_findings(said, PLACES) == []


def test_a_mistake_is_listed_once_and_the_gravest_first() -> None:
    """A race seen from both sides is one; so is one that many threads have."""
    lines = [
        "hipcpu-sanitizer UNINITIALISED 10 - k; thread 0",
        RACE.format("10", "30"),
        RACE.format("30", "10"),
        "hipcpu-sanitizer OUT_OF_BOUNDS 10 - k; thread 1",
        "hipcpu-sanitizer OUT_OF_BOUNDS 1f - k; thread 2",
    ]

    found = distinct(read_findings("\n".join(lines), PLACES))

    assert [finding.kind.value for finding in found] == [
        "OUT_OF_BOUNDS",
        "DATA_RACE",
        "UNINITIALISED",
    ]
    assert found[0].text == "thread 1"


def test_a_verdict_stays_short() -> None:
    table = {
        "schema": 1,
        "files": {
            "kernel.hip": {"name": "mine.hip", "lines": [[[1, n, 1]] for n in range(1, 200)]}
        },
        "code": [],
    }
    said = "\n".join(
        f"hipcpu-sanitizer DATA_RACE at:kernel.hip:{n}:1 - k; t" for n in range(1, 200)
    )

    assert len(distinct(read_findings(said, Places(table)))) == MOST


def test_a_table_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "kernel.places.json"
    file.write_text('{"schema":2}')

    with pytest.raises(ValueError, match="not a table of places"):
        Places.read(file)
