"""The gate ``retention`` by the real program."""

from __future__ import annotations

import json

from tests.testkit.cli import CliWorkspace


def test_it_is_asked_for_and_changes_no_score(quick: CliWorkspace) -> None:
    """It follows perf and unseen, and says how much of the speedup is left."""
    usual = quick.run("test", "//double", "--json")
    asked = quick.run("test", "//double", "--gates=+retention", "--json")

    assert not any("retention" in label for label in usual.executed)
    assert asked.executed == {"//double:double.retention"}
    found = asked.gate("retention")
    assert (asked.code, found["verdict"]) == (0, "PASS")
    assert "of the speedup is left" in found["summary"]
    assert asked.gate("score")["key"] == usual.gate("score")["key"]
    verdict = quick.root / "out/double/double.retention/verdict.json"
    assert json.loads(verdict.read_bytes())["retention"] > 0


def test_a_wrong_kernel_is_not_timed(quick: CliWorkspace) -> None:
    source = (quick.root / "double/double.hip").read_text()
    quick.write("double/solutions/expert/double.hip", source.replace("2.0f", "2.1f"))

    ran = quick.run("test", "//double", "--gates=+retention", "--json")

    assert ran.gate("correctness")["verdict"] == "FAIL"
    assert ran.gate("retention")["verdict"] == "SKIPPED"
