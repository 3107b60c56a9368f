"""Records: who holds them, what breaks them, and the file that they are kept in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from kabuild.base.errors import UsageError
from kabuild.cli.records import broken_by
from kabuild.report.records import Record, Time, records, vague_times, versions
from kabuild.report.records_file import document, read_records, write_records
from tests.kabuild.report.test_page import case, evaluation, result
from tests.testkit.evaluations import said, saying

if TYPE_CHECKING:
    from pathlib import Path

    from kabuild.report.evaluation import Evaluation

CONFIG = "f32 n=4096"


def timed(agent: str, nanoseconds: float, *, error: float = 1.01, **more: Any) -> Evaluation:
    """A right kernel with one time, whose interval has ``error`` as the factor to its ends."""
    one = result("softmax", 2.0)
    ends = {"low": 2.0 / error, "high": 2.0 * error}
    found = {**case(CONFIG, 2.0), "candidate_ns": nanoseconds, **ends, **more}
    gates = said(one)
    given = evaluation(agent, saying(one, {**gates, "perf": {**gates["perf"], "cases": [found]}}))
    return replace(given, request={"agent": f"//agents:{agent}"}, digest=agent[0] * 64)


def holder(*evaluations: Evaluation) -> tuple[str, list[str]]:
    """Who holds the record of one config, and who held it before."""
    (record,) = records(evaluations)
    return record.best.agent, [time.agent for time in record.broken]


def test_a_record_falls_to_a_time_that_is_surely_shorter() -> None:
    assert holder(timed("a", 100), timed("b", 90), timed("c", 80)) == ("c", ["a", "b"])
    assert holder(timed("a", 100), timed("b", 99)) == ("a", [])
    assert holder(timed("a", 100), timed("b", 110)) == ("a", [])
    assert holder(timed("a", 100), timed("b", 90, error=1.2)) == ("a", [])


def test_what_is_wrong_vague_or_without_interval_holds_none() -> None:
    vague = timed("b", 1, error=3)
    bare = timed("c", 1, low=None)
    wrong = evaluation("d", result("softmax", None))
    assert holder(timed("a", 100), vague, bare, wrong) == ("a", [])
    assert records([vague, bare, wrong]) == []


def test_what_is_too_vague_for_a_record_is_told_if_it_would_be_one() -> None:
    vague, bare, slow = timed("b", 1, error=3), timed("c", 2, low=None), timed("d", 101, error=3)
    found = records([timed("a", 100)])

    def told(*evaluations: Evaluation) -> list[str]:
        times = vague_times(evaluations, lambda _, result: result.cases, found)
        assert all(time.vague for time in times)
        return [time.agent for time in times]

    assert told(timed("a", 100), slow) == []
    assert told(vague) == told(vague, bare) == told(bare, vague) == ["b"]
    assert told(bare, timed("e", 1)) == ["c"]


def test_times_of_other_machines_are_not_compared() -> None:
    here = timed("a", 100)
    there = replace(timed("b", 1), platform={"name": "cuda", "device": "NVIDIA H200"})
    found = records([here, there])
    assert [record.best.machine[0] for record in found] == ["cpu", "cuda: NVIDIA H200"]


def test_times_of_other_tasks_with_its_label_are_not_compared() -> None:
    def of(task: str, agent: str, nanoseconds: float) -> Evaluation:
        given = timed(agent, nanoseconds)
        (one,) = given.results
        told = replace(one, evidence=replace(one.evidence, task_digest=task))
        return replace(given, results=(told,))

    eased, whole = "e" * 64, "w" * 64
    found = records([of(whole, "a", 100), of(eased, "b", 1), of(whole, "c", 80)])

    assert [(one.best.agent, len(one.broken)) for one in found] == [("b", 0), ("c", 1)]
    assert [*versions(one.best for one in found).values()] == [eased[:12], whole[:12]]
    assert [*versions([found[0].best]).values()] == [""]


def test_records_of_a_file_stand_until_they_are_broken(tmp_path: Path) -> None:
    path = tmp_path / "records.json"
    write_records(path, records([timed("a", 100)], date="2026-01-30"))
    held = read_records(path)
    assert held == records([timed("a", 100)], date="2026-01-30")
    assert records([timed("a", 100)], held=held, date="2026-01-31") == held, "again"

    (record,) = records([timed("b", 90)], held=held, date="2026-01-31")
    assert (record.best.agent, record.best.date) == ("b", "2026-01-31")
    assert [(time.agent, time.date) for time in record.broken] == [("a", "2026-01-30")]
    write_records(path, [record])
    assert read_records(path) == [record]


def broken_file(**edit: Any) -> str:
    """A file with one record, some fields of which are something else."""
    told = document([Record(_time(timed("a", 100)))])
    told["records"][0] |= edit
    return json.dumps(told)


def _time(one: Evaluation) -> Time:
    (record,) = records([one])
    return record.best


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "records.json: it is empty"),
        ("{}x", r"records.json:1: it is not JSON: Extra data"),
        ('{"schema":\n', r"records.json:2: it is not JSON: Expecting value"),
        ("[]", "is not a file of records"),
        ('{"schema": "kabuild/records/1"}', "its schema is 'kabuild/records/1'"),
        ('{"schema": "kabuild/records/2", "records": [{}]}', "is not a file of records"),
        (broken_file(nanoseconds="1"), r"records\[0\] has no time with an interval"),
        (broken_file(nanoseconds=-1), r"records\[0\] has no time with an interval"),
        (broken_file(speedup_low=None), r"records\[0\] has no time with an interval"),
        (broken_file(task="softmax"), r"records\[0\].task: "),
        (broken_file(task_digest="1"), r"records\[0\].task_digest is '1'"),
        (broken_file(bundle="../a"), r"records\[0\].bundle is '../a'"),
        (broken_file(date="today"), r"records\[0\].date is 'today'"),
        (broken_file(config=1), r"records\[0\].config is 1"),
        (
            broken_file(
                broken=[{**document([Record(_time(timed("b", 200)))])["records"][0], "config": "x"}]
            ),
            "belongs to another task, config or machine",
        ),
    ],
)
def test_a_file_of_something_else_is_one_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "records.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_records(path)


def test_what_a_bundle_calls_a_config_stays_in_its_line() -> None:
    held = records([timed("a", 100, config="x\nerror: all is lost")])
    broken = records([timed("b", 90, config="x\nerror: all is lost")], held=held)
    (line,) = broken_by(broken, held)
    assert line.startswith(
        "//tasks/hip2hip/softmax x error: all is lost: 90 ns breaks the record of"
    )
    assert not [*broken_by(held, held)]
