"""Running a bundle again: what is equal, what differs and where, what cannot be compared."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from hashlib import sha256
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from kabuild.base.canonical import (
    int_field,
    message_field,
    parse_fields,
    repeated_field,
    text_field,
)
from kabuild.base.errors import ExitCode, SandboxError
from kabuild.bundle.compare import Comparison, Word
from kabuild.bundle.manifest import Manifest
from kabuild.cli import replay
from kabuild.execution.prepared import BASE_ENV
from kabuild.model.digest import Digest
from kabuild.model.gate import Gates
from kabuild.published.origin import Origins
from kabuild.published.replay import Replayed, replay_file
from kabuild.sandbox import namespaces
from kabuild.store import Store
from tests.testkit.bundles import RECORD, read_members, with_manifest
from tests.testkit.events import RecordingSink

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kabuild.published.conftest import Published


def test_everything_is_reproduced_on_a_machine_that_has_nothing(
    published: Published, tmp_path: Path
) -> None:
    ran = published.elsewhere(tmp_path).run("replay", str(published.bundle), "--json")
    assert ran.code == 0
    totals = {"reproduced": 6, "same outcome": 0, "different": 0, "not comparable": 0}
    assert ran.json["totals"] == totals
    assert ran.json["remedies"] == []
    assert ran.json["not_rerun"] == []
    assert len(ran.executed) == 6


def test_a_bundle_has_no_environment_outside_of_sandboxes(
    published: Published, tmp_path: Path
) -> None:
    """A warm interpreter would start with the action's own variables, which run programs."""
    mark = tmp_path / "ran"
    env = {
        **BASE_ENV,
        "PYTHONWARNINGS": "all:0:antigravity.x:0:0",  # imports a module that opens a browser
        "BROWSER": f"/bin/sh -c '>{mark}' %s",
    }
    members = read_members(published.bundle)
    blobs: dict[str, bytes] = {}

    def stored(data: bytes) -> Digest:
        digest = Digest.of(data)
        blobs[f"blobs/{digest.hash}"] = data
        return digest

    def edit(manifest: dict[str, Any]) -> None:
        record = next(item for item in manifest["actions"] if item["gate"] == "compile")
        old = {name: members[f"blobs/{record[name].split('/')[0]}"] for name in ("key", "command")}
        command = repeated_field(1, (sys.executable.encode(), b"tools/compile.py"))
        pairs = (text_field(1, name) + text_field(2, env[name]) for name in sorted(env))
        command += repeated_field(2, pairs)
        command += _fields_from(old["command"], 5)
        digest = stored(command)
        key = stored(message_field(1, digest.to_wire()) + _fields_from(old["key"], 2))
        record |= {"key": str(key), "command": str(digest), "preload": ["numpy"]}
        manifest["blobs"] |= {digest.hash: digest.size, key.hash: key.size}

    bundle = with_manifest(published.bundle, tmp_path / "a.kab", edit, blobs)
    ran = published.elsewhere(tmp_path).run("replay", str(bundle), "--json")

    assert "compile" in {item["gate"] for item in ran.json["actions"]}
    assert not mark.exists()


def _fields_from(message: bytes, first: int) -> bytes:
    """The fields of a message from number ``first`` on."""
    found = ((number, value) for number, value in parse_fields(message) if number >= first)
    return b"".join(
        int_field(number, value) if isinstance(value, int) else message_field(number, value)
        for number, value in found
    )


def test_without_a_sandbox_nothing_of_a_bundle_runs(
    published: Published, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespaces, "probe", lambda: "kernel says no")
    store = Store.open(tmp_path / "store")

    with pytest.raises(SandboxError, match="a bundle's code needs a sandbox") as refused:
        replay_file(
            published.bundle,
            store,
            RecordingSink(),
            cwd=tmp_path,
            known=Gates(),
            limit=1 << 30,
            stop=Event(),
        )

    assert refused.value.exit_code is ExitCode.ENVIRONMENT
    assert "--sandbox" not in refused.value.hint
    assert not [path for path in (store.root / "cas").rglob("*") if path.is_file()]


def test_a_spot_check_draws_the_same_actions_for_everyone(
    published: Published, tmp_path: Path
) -> None:
    elsewhere = published.elsewhere(tmp_path)
    first = elsewhere.run("replay", str(published.bundle), "--sample=2", "--json")
    again = elsewhere.run("replay", str(published.bundle), "--sample=2", "--json")
    assert first.code == 0
    assert len(first.json["actions"]) == 2
    assert first.json == again.json
    assert first.executed == again.executed  # nothing comes from a cache
    assert first.json["drawn_from"] == 6
    one = elsewhere.run("replay", str(published.bundle), "--sample=1")
    assert "\n1 of 6 actions: 1 reproduced, " in one.out


def test_patterns_choose_tasks(published: Published, tmp_path: Path) -> None:
    elsewhere = published.elsewhere(tmp_path)
    one = elsewhere.run("replay", str(published.bundle), "//tasks/family0/t1", "--json")
    assert one.code == 0
    assert [item["label"] for item in one.json["actions"]] == ["//tasks/family0/t1:t1.compile"]
    rest = elsewhere.run(
        "replay", str(published.bundle), "--json", "--", "//...", "-//tasks/family0/t1"
    )
    assert {item["task"] for item in rest.json["actions"]} == {"//tasks/family0/t0"}
    assert len(rest.json["actions"]) == 5
    none = elsewhere.run("replay", str(published.bundle), "//tasks/family0/t3")
    assert none.code == 2
    assert "no task of the bundle matches //tasks/family0/t3" in none.err
    assert "did you mean '//tasks/family0/t" in none.err


@pytest.mark.parametrize(
    "patterns",
    [("//tasks/family0/t0", "//tasks/typo/..."), ("//tasks/typo/...", "-//tasks/family0/t0")],
)
def test_each_pattern_must_match_a_task(
    published: Published, tmp_path: Path, patterns: tuple[str, ...]
) -> None:
    ran = published.elsewhere(tmp_path).run("replay", str(published.bundle), "--", *patterns)
    assert ran.code == 2
    assert "no task of the bundle matches //tasks/typo/..." in ran.err


def test_what_is_subtracted_from_nothing_is_nothing(published: Published, tmp_path: Path) -> None:
    ran = published.elsewhere(tmp_path).run("replay", str(published.bundle), "--", "-//tasks/...")
    assert ran.code == 2
    assert "no task of the bundle matches -//tasks/..." in ran.err


def test_load_is_named_where_only_measurements_differ() -> None:
    """Load does not explain that another gate has another verdict."""
    timed, other = (
        Comparison(replace(RECORD, timed=timed), Word.DIFFERENT, "17.9x then, 6.69x now")
        for timed in (True, False)
    )

    def told(*comparisons: Comparison) -> str:
        manifest = Manifest("1", {}, {"gates": []}, (), {})
        return replay.told(Replayed(manifest, comparisons, Origins((), {}), {}))

    advice = "if the machine was loaded, then or now, replay again while it is idle"
    assert advice in told(timed)
    assert advice not in told(timed, other)
    assert advice not in told(replace(timed, word=Word.REPRODUCED))


def test_gates_restrict_it(published: Published, tmp_path: Path) -> None:
    elsewhere = published.elsewhere(tmp_path)
    ran = elsewhere.run("replay", str(published.bundle), "--gates=perf", "--json")
    assert [item["gate"] for item in ran.json["actions"]] == ["perf"]
    gates = ["compile", "correctness", "perf", "unseen", "score"]
    assert ran.json["request"]["gates"] == gates, "which its publisher asked for"
    assert ran.json["left_out"] == {}, "what t1 lacks, its compiler stopped"
    none = elsewhere.run("replay", str(published.bundle), "--gates=sanitize")
    assert none.code == 1
    assert "no action of the bundle can be rerun for gates sanitize" in none.err


def test_a_false_verdict_is_found_and_named(published: Published, tmp_path: Path) -> None:
    """A publisher who turned a FAIL into a PASS, every digest in order."""
    forged = b'{"schema":1,"gate":"compile","verdict":"PASS","reason":"","summary":""}\n'
    digest = sha256(forged).hexdigest()

    def edit(manifest: dict[str, Any]) -> None:
        (record,) = [
            item
            for item in manifest["actions"]
            if item["task"] == "//tasks/family0/t1" and item["gate"] == "compile"
        ]
        record["files"] = [
            [path, f"{digest}/{len(forged)}" if path == "verdict.json" else old, executable]
            for path, old, executable in record["files"]
        ]
        manifest["blobs"][digest] = len(forged)

    blobs = {f"blobs/{digest}": forged}
    bundle = with_manifest(published.bundle, tmp_path / "forged.kab", edit, blobs)
    elsewhere = published.elsewhere(tmp_path)

    verified = elsewhere.run("verify", str(bundle))
    assert verified.code == 0  # whole, and a lie
    assert (
        "gates left out: correctness, perf, unseen, score of //tasks/family0/t1\n"
    ) in verified.out
    ran = elsewhere.run("replay", str(bundle), "--json")
    assert ran.code == 3
    (found,) = [item for item in ran.json["actions"] if item["result"] == "different"]
    assert found["label"] == "//tasks/family0/t1:t1.compile"
    assert found["detail"] == 'verdict.json: verdict was "PASS", is "FAIL"'


def _relabelled(manifest: dict[str, Any]) -> None:
    """Correctness as unseen; only a rerun can tell, as its own verdict is forged, too."""
    actions = manifest["actions"]
    (unseen,) = [item for item in actions if item["gate"] == "unseen"]
    (other,) = [item for item in actions if item["gate"] == "correctness"]
    for field in ("key", "command", "root"):
        unseen[field] = other[field]


def test_a_gate_that_turns_out_to_be_another_one_differs(
    published: Published, tmp_path: Path
) -> None:
    bundle = with_manifest(published.bundle, tmp_path / "a.kab", _relabelled)
    ran = published.elsewhere(tmp_path).run("replay", str(bundle), "--json")
    assert ran.code == 3
    (found,) = [item for item in ran.json["actions"] if item["result"] != "reproduced"]
    assert found["label"] == "//tasks/family0/t0:t0.unseen"
    assert (found["result"], found["detail"]) == ("different", "its action is gate 'correctness'")


def test_a_gate_that_is_not_to_be_run_again_is_refused(
    published: Published, tmp_path: Path
) -> None:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["actions"][1]["replayable"] = False

    bundle = with_manifest(published.bundle, tmp_path / "a.kab", edit)
    elsewhere = published.elsewhere(tmp_path)
    for command in ("replay", "verify", "report", "records"):
        ran = elsewhere.run(command, str(bundle))
        assert ran.code == 1
        assert "is marked as not replayable, but uses neither a network nor secrets" in ran.err


def test_an_output_that_is_left_out_can_still_differ(published: Published, tmp_path: Path) -> None:
    def edit(manifest: dict[str, Any]) -> None:
        first = manifest["actions"][0]
        first["withheld"] = ["made"]
        first["files"][0][1] = f"{'0' * 64}/1"

    bundle = with_manifest(published.bundle, tmp_path / "a.kab", edit)
    ran = published.elsewhere(tmp_path).run("replay", str(bundle), "--json")
    assert ran.code == 3
    assert ran.json["actions"][0]["detail"] == "made differs; the bundle leaves out what it was"


def test_a_toolchain_that_is_not_here_makes_figures_incomparable(
    published: Published, tmp_path: Path
) -> None:
    def edit(manifest: dict[str, Any]) -> None:
        for item in manifest["actions"]:
            item["toolchains"] = ["absent"]

    bundle = with_manifest(published.bundle, tmp_path / "other.kab", edit)
    ran = published.elsewhere(tmp_path).run("replay", str(bundle), "--json")
    assert ran.code == 36
    assert ran.json["totals"]["not comparable"] == 6
    assert "no toolchain 'absent'" in ran.json["actions"][0]["detail"]


def test_the_code_of_a_publisher_is_not_taken_for_ours(
    published: Published, tmp_path: Path
) -> None:
    ran = published.elsewhere(tmp_path).run("replay", str(published.bundle), "--json")
    assert ran.json["foreign_code"] == ["/bin/sh -c"], "what judges is in the command"
    assert ran.json["given"]["kernel"] == 2


def test_nothing_of_a_bundle_becomes_a_cached_result(published: Published, tmp_path: Path) -> None:
    """Who replays a lie does not find it in the cache of an own evaluation afterwards."""
    elsewhere = published.elsewhere(tmp_path)
    elsewhere.run("replay", str(published.bundle))
    assert not any(path.is_file() for path in (elsewhere.store / "ac").rglob("*"))
    members = read_members(published.bundle)
    count = sum(name.startswith("blobs/") for name in members)
    assert sum(path.is_file() for path in (elsewhere.store / "cas").rglob("*")) >= count


def test_a_file_that_is_not_there(published: Published, tmp_path: Path) -> None:
    ran = published.elsewhere(tmp_path).run("replay", "absent.kab")
    assert ran.code == 2
    assert "absent.kab: No such file or directory" in ran.err
    assert not ran.out


def test_the_processor_of_whoever_published_explains_other_digits_alone(
    published: Published, tmp_path: Path
) -> None:
    """What is equal all the same is reproduced; one that says nothing of it can be read."""
    assert json.loads(read_members(published.bundle)["manifest.json"])["instructions"]

    def edit(manifest: dict[str, Any]) -> None:
        manifest["instructions"] = "x86-64-v9"

    bundle = with_manifest(published.bundle, tmp_path / "other.kab", edit)
    ran = published.elsewhere(tmp_path).run("replay", str(bundle), "--json")

    assert ran.code == 0
    assert ran.json["totals"]["reproduced"] == 6
