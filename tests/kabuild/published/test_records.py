"""``kabuild records``: what bundles change in a file of records, and what ``publish`` says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.generated import generate

if TYPE_CHECKING:
    from pathlib import Path

HEAD = '"gate": gate, '


def retimed(place: CliWorkspace, nanoseconds: float, error: float = 0.01) -> None:
    """Let the gates say that a call took so long, give or take 1 %."""
    rule = place.root / "rules/copied/rule.py"
    before, mark, _ = rule.read_text().partition(f"{HEAD}")
    rest = rule.read_text().partition('"summary"')[2]
    times = {"baseline_ns": 2000.0, "candidate_ns": nanoseconds, "speedup": 2000.0 / nanoseconds}
    ends = {"low": 2000 * (1 - error) / nanoseconds, "high": 2000 * (1 + error) / nanoseconds}
    cases = f'"cases": [{ {"config": "f32 n=8", **times, **ends} }], '
    rule.write_text(f'{before}{mark}{cases}"summary"{rest}')


def replayed(place: CliWorkspace, bundle: str) -> None:
    ran = place.run("replay", bundle, "--json")
    assert ran.code == 0, ran.err
    (place.root / f"{bundle}.replay.json").write_text(ran.out)


def shown(place: CliWorkspace, *arguments: str) -> dict[str, Any]:
    ran = place.run("records", "--json", *arguments)
    assert ran.code == 0, ran.err
    found = ran.json
    assert isinstance(found, dict)
    return found


def test_a_record_counts_once_a_replay_reproduced_it(tmp_path: Path) -> None:
    generate(tmp_path / "work", 1, shared=1, age=0)
    place = CliWorkspace(tmp_path / "work", tmp_path / "store")
    place.write("WORKSPACE.toml", 'name = "w"\n[scoring]\nrecords = "kept/records.json"\n')
    (place.root / "kept").mkdir()
    retimed(place, 1000.0)
    assert "breaks" not in place.run("publish", "//...", "-o", "a.kab").out

    found = shown(place, "a.kab", "--update")
    assert (found["records"], len(found["not_replayed"])) == ([], 1)
    assert "would be the first" in place.run("records", "a.kab").out
    assert "to replay one: kabuild replay --json X.kab" in place.run("records", "a.kab").out
    assert "kept/records.json: no new record" in place.run("records", "a.kab", "--update").err
    assert not (place.root / "kept/records.json").exists()
    assert [*found["foreign_code"].values()] == [["/bin/sh -c"]]
    assert "a.kab: its times were measured by code that" in place.run("records", "a.kab").out

    replayed(place, "a.kab")
    (first,) = shown(place, "a.kab", "--update", "--date=2026-01-30")["new"]
    assert (first["task"], first["config"]) == ("//tasks/family0/t0", "f32 n=8")
    assert (first["nanoseconds"], first["agent"]) == (1000.0, "expert")
    assert (first["date"], first["machine"].split(":")[0]) == ("2026-01-30", "cpu")
    assert shown(place)["records"] == [first]
    (place.root / "kept/records.json").unlink()
    assert "kept/records.json: 1 new record" in place.run("records", "a.kab", "--update").err
    (first,) = shown(place)["records"]
    again = shown(place, "a.kab", "--update")
    assert (again["records"], again["new"], again["not_replayed"]) == ([first], [], [])

    retimed(place, 500.0)
    ran = place.run("publish", "//...", "-o", "c.kab")
    held = f"1 µs by expert ({first['bundle'][:12]})"
    assert f"//tasks/family0/t0 f32 n=8: 500 ns breaks the record of {held}\n" in ran.out
    assert "kabuild replay --json c.kab > c.kab.replay.json" in ran.out

    found = shown(place, "c.kab", "--update")
    assert (found["records"], found["new"], len(found["not_replayed"])) == ([first], [], 1)
    replayed(place, "c.kab")
    (second,) = shown(place, "c.kab", "--update", "--date=2026-01-31")["records"]
    assert (second["nanoseconds"], second["date"]) == (500.0, "2026-01-31")
    assert second["broken"] == [{k: v for k, v in first.items() if k != "broken"}]
    head, columns, task, line, *rest = place.run("records").out.splitlines()
    assert (head.split(":")[0], columns.split()[:2], rest) == (
        "records on cpu",
        ["config", "time"],
        [],
    )
    assert (task, line.split("  ")[1:3]) == ("//tasks/family0/t0", ["f32 n=8", "500 ns"])


def test_times_that_are_too_vague_are_shown_with_the_reason(tmp_path: Path) -> None:
    generate(tmp_path / "work", 1, shared=1, age=0)
    place = CliWorkspace(tmp_path / "work", tmp_path / "store")
    retimed(place, 1000.0, error=0.9)
    assert place.run("publish", "//...", "-o", "a.kab").code == 0
    replayed(place, "a.kab")

    ran = place.run("records", "a.kab")
    head, _, task, line, *rest = ran.out.splitlines()
    assert (head.partition(" on ")[0], task) == ("not records yet", "//tasks/family0/t0")
    assert line.endswith("would be the first; its 95 % interval is too wide")
    assert "kabuild test --nocache_test_results" in rest[1]
    assert "to replay one" not in ran.out

    found = shown(place, "a.kab", "//tasks/family0/t0", "--file=r.json")
    assert (found["records"], found["not_replayed"], len(found["too_vague"])) == ([], [], 1)
    assert "no new record" in place.run("records", "a.kab", "--file=r.json", "--update").err


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("different", "replayed, and not the same: "),
        ("not comparable", "not wholly replayed"),
    ],
)
def test_what_kept_a_replay_from_confirming_a_time_is_said(
    tmp_path: Path, word: str, said: str
) -> None:
    generate(tmp_path / "work", 1, shared=1, age=0)
    place = CliWorkspace(tmp_path / "work", tmp_path / "store")
    retimed(place, 1000.0)
    assert place.run("publish", "//...", "-o", "a.kab").code == 0
    replayed(place, "a.kab")
    kept = place.root / "a.kab.replay.json"
    replay = json.loads(kept.read_text())
    for action in replay["actions"]:
        action["result"] = word
    kept.write_text(json.dumps(replay))

    assert f"would be the first; {said}" in place.run("records", "a.kab", "--file=r.json").out


def test_patterns_select_tasks(tmp_path: Path) -> None:
    generate(tmp_path / "work", 2, shared=1, age=0)
    place = CliWorkspace(tmp_path / "work", tmp_path / "store")
    retimed(place, 1000.0)
    assert place.run("publish", "//...", "-o", "a.kab").code == 0
    replayed(place, "a.kab")

    def tasks(*patterns: str) -> list[str]:
        found = shown(place, "a.kab", "--file=r.json", *patterns)
        return [one["task"] for one in found["records"]]

    both = ["//tasks/family0/t0", "//tasks/family0/t1"]
    assert tasks() == tasks("//tasks/...") == both
    assert tasks("//tasks/family0/t1") == both[1:]
    assert tasks("--", "//...", "-//tasks/family0/t1") == both[:1]
    absent = place.run("records", "a.kab", "--file=r.json", "//tasks/family1/t1")
    assert (absent.code, "no record of //tasks/family1/t1" in absent.err) == (2, True)
    assert "did you mean '//tasks/family0/t1'?" in absent.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "no bundle or file of records was named"),
        (("--update",), "no file of records"),
        (("absent.kab",), "absent.kab: No such file or directory"),
        (("//a/..x",), "//a/..x"),
        (("//a/...",), "no bundle or file of records was named"),
        (("//a/...", "--file=r.json", "--update"), "leave one of them out"),
        (("--file=.",), "is a directory"),
        (("--file=WORKSPACE.toml",), "WORKSPACE.toml:1: it is not JSON: Expecting value"),
        (("--file=r.json", "--date=yesterday"), "'yesterday' is not a date"),
        (("--file=r.json", "--date=2026-02-30"), "'2026-02-30' is not a date"),
    ],
)
def test_bad_input_is_one_error(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    ran = CliWorkspace.make(tmp_path).run("records", *arguments)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err
