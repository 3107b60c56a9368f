"""Runs of other benchmarks on devices: what is taken over, kept, and still to be done."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import originals
import pytest
from workplace import Ran, Workplace


def entry(task: str, gate: str, verdict: str = "PASS", reason: str = "") -> dict[str, object]:
    return {
        "task": f"{task}:{task.rpartition('/')[2]}",
        "gate": gate,
        "verdict": verdict,
        "reason": reason,
        "summary": "said",
        "seconds": 1.5,
    }


def run(*entries: dict[str, object]) -> Ran:
    return Ran(1, json.dumps({"targets": entries}), "one\ntwo\n", 3.0)


def test_a_copy_knows_what_another_workspace_has_imported(tmp_path: Path) -> None:
    root, workspace = tmp_path / "copy", tmp_path / "ws"
    (workspace / "imports").mkdir(parents=True)
    (workspace / "imports/b.lock.toml").write_text("facts")
    root.mkdir()
    (root / "WORKSPACE.toml").write_text('name = "kabuild"\n')
    place = Workplace(root, tmp_path / "store")

    (workspace / "WORKSPACE.toml").write_text('name = "w"\n')
    with pytest.raises(ValueError, match=r"has no \[\[repository\]\]: import one there"):
        originals.adopt(place, workspace)
    told = '[[repository]]\nname = "b"\nadapter = "kernelbench"\npath = "../B \\"1\\""\n'
    (workspace / "WORKSPACE.toml").write_text(told)
    originals.adopt(place, workspace)

    assert (root / "imports/b.lock.toml").read_text() == "facts"
    assert tomllib.loads((root / "WORKSPACE.toml").read_text()) == {
        "name": "kabuild",
        "repository": [
            {"name": "b", "adapter": "kernelbench", "path": str(tmp_path / 'B "1"')},
        ],
    }


def test_gates_that_were_not_judged_are_left_out(tmp_path: Path) -> None:
    place = Workplace(tmp_path, tmp_path / "store")
    case = {"config": "f32", "speedup": 1.01, "low": 0.9, "high": 1.1}
    case |= {"candidate_ns": 10.0, "baseline_ns": 10.1, "slots": 3}
    left = place.output("@b//x/one:one.perf", "verdict.json")
    left.parent.mkdir(parents=True)
    left.write_text(json.dumps({"cases": [case]}))
    samples = {"baseline": [[{"reported_ns": 30, "slots": 3}]], "candidate": []}
    left.with_name("samples.json").write_text(json.dumps({"configs": {"f32": samples}}))
    why = place.output("@b//x/two:two.correctness", "verdict.json")
    why.parent.mkdir(parents=True)
    why.write_text('{"detail": "worst at [1]"}')

    made = originals.found(
        place,
        run(
            entry("@b//x/one", "correctness"),
            entry("@b//x/one", "perf"),
            entry("@b//x/one", "unseen", "CANCELLED"),
            entry("@b//x/two", "correctness", "FAIL", "WRONG_RESULT"),
            entry("@b//x/three", "correctness", "CANCELLED"),
        ),
    )

    assert set(made["tasks"]) == {"@b//x/one", "@b//x/two"}
    assert set(made["tasks"]["@b//x/one"]["gates"]) == {"correctness", "perf"}
    processes = {"processes_ns": {"baseline": [10.0], "candidate": []}}
    shown = {key: case[key] for key in case if key != "slots"}
    assert made["tasks"]["@b//x/one"]["configs"] == [shown | processes]
    assert made["tasks"]["@b//x/two"]["gates"]["correctness"]["detail"] == "worst at [1]"
    assert originals.table(made) == [
        "@b//x/one correctness 1.5, perf 1.5, 1.010x",
        "@b//x/two correctness FAIL WRONG_RESULT: said",
    ]


def test_a_task_counts_once_two_machines_agree(tmp_path: Path) -> None:
    place = Workplace(tmp_path, tmp_path / "store")
    first = originals.found(place, run(entry("@b//x/one", "score"), entry("@b//x/two", "score")))
    second = originals.found(
        place, run(entry("@b//x/two", "score"), entry("@b//x/one", "perf", "FAIL", "TIMEOUT"))
    )
    labels = ["@b//x/one:one", "@b//x/two:two", "@b//x/three:three"]

    assert originals.passed([first, second]) == {"@b//x/one": 1, "@b//x/two": 2}
    assert originals.left(labels, [first, second]) == ["@b//x/three", "@b//x/one"]


def test_what_is_kept_can_be_read() -> None:
    runs = [json.loads(file.read_bytes()) for file in originals.KEPT.glob("*.json")]

    assert sum(originals.passed(runs).values()) > 50
    for found in runs:
        assert found["machine"]["revision"]
        assert all(row["gates"] for row in found["tasks"].values())
