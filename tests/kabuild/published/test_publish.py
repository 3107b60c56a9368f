"""One file of an evaluation: the same bytes every time, or an error and nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from kabuild.base.errors import StoreError
from kabuild.bundle.archive import open_bundle, write_bundle
from kabuild.bundle.manifest import Manifest
from kabuild.model.digest import Digest
from tests.kabuild.published.conftest import Published, make
from tests.testkit.bundles import read_members
from tests.testkit.cli import CliWorkspace
from tests.testkit.generated import generate

if TYPE_CHECKING:
    from pathlib import Path


def test_equal_evaluations_are_equal_files(published: Published, tmp_path: Path) -> None:
    (tmp_path / "at another place").mkdir()
    again = make(tmp_path / "at another place")
    assert again.bundle.read_bytes() == published.bundle.read_bytes()


def test_zstd_and_tar_are_all_it_takes_to_read_one(published: Published) -> None:
    members = read_members(published.bundle)
    manifest = json.loads(members["manifest.json"])

    assert list(members)[:2] == ["manifest.json", "provenance.json"]
    assert manifest["schema"] == "kabuild/bundle/1"
    assert {f"blobs/{hash_}" for hash_ in manifest["blobs"]} == set(members) - set(
        list(members)[:2]
    )
    judged = {(item["task"], item["gate"]) for item in manifest["actions"] if item["gate"]}
    assert ("//tasks/family0/t0", "perf") in judged


def test_the_provenance_names_every_verdict_by_its_digest(published: Published) -> None:
    members = read_members(published.bundle)
    statement = json.loads(members["provenance.json"])

    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://slsa.dev/provenance/v1"
    for subject in statement["subject"]:
        verdict = json.loads(members[f"blobs/{subject['digest']['sha256']}"])
        assert verdict["verdict"] in {"PASS", "FAIL"}
    assert len(statement["subject"]) == 6  # five of t0; compile of t1, which failed


def test_no_path_and_no_salt_of_this_machine_is_in_it(published: Published) -> None:
    members = read_members(published.bundle)
    for name, data in members.items():
        assert str(published.workspace.root).encode() not in data, name
    request = json.loads(members["manifest.json"])["request"]
    assert set(request["salt"]) <= set("0123456789abcdef")


@pytest.fixture
def small(tmp_path: Path) -> CliWorkspace:
    generate(tmp_path / "work", 1, shared=1, age=0)
    return CliWorkspace(tmp_path / "work", tmp_path / "store")


def test_a_private_salt_is_published_only_on_request(small: CliWorkspace) -> None:
    small.write("salt", "0123456789abcdef0123456789abcdef")
    refused = small.run("publish", "//...", "--unseen_salt_file=salt", "-o", "a.kab")
    assert refused.code == 1
    assert "private salt of --unseen_salt_file" in refused.err
    assert not (small.root / "a.kab").exists()

    revealed = small.run(
        "publish", "//...", "--unseen_salt_file=salt", "-o", "a.kab", "--reveal_salt"
    )
    assert revealed.code == 0


def test_what_ran_without_a_sandbox_is_not_published(small: CliWorkspace) -> None:
    refused = small.run("publish", "//...", "--sandbox=none", "-o", "a.kab")
    assert refused.code == 1
    assert "ran without a sandbox" in refused.err


def test_a_gate_that_the_machine_failed_is_not_published(small: CliWorkspace) -> None:
    rule = small.root / "rules/copied/rule.py"
    rule.write_text(rule.read_text().replace("cp $v out/verdict.json", "exit 1"))
    refused = small.run("publish", "//...", "-o", "a.kab")
    assert refused.code == 36
    assert "t0.compile was not judged (INFRA), so nothing was published: " in refused.err
    assert "publish again" in refused.err
    assert not (small.root / "a.kab").exists()


def test_an_evaluation_whose_task_is_wrong_is_not_published(small: CliWorkspace) -> None:
    rule = small.root / "rules/copied/rule.py"
    rule.write_text(rule.read_text().replace("cp $v out/verdict.json", "exit 4"))
    refused = small.run("publish", "//...", "-o", "a.kab")
    assert refused.code == 1
    assert "t0.compile was not judged (FAILED)" in refused.err


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("a.tar", "does not end in .kab"),
        ("absent/a.kab", "absent/a.kab: No such file or directory"),
        ("dir.kab", "directory"),
    ],
)
def test_a_place_that_cannot_be_written_is_named(
    small: CliWorkspace, output: str, message: str
) -> None:
    (small.root / "dir.kab").mkdir()
    ran = small.run("publish", "//...", "-o", output)
    assert ran.code == 2
    assert message in ran.err
    assert "Traceback" not in ran.err


def test_an_interrupted_publish_leaves_the_file_that_was_there(
    published: Published, tmp_path: Path
) -> None:
    target = tmp_path / "a.kab"
    target.write_text("the one before")
    with open_bundle(published.bundle) as bundle:
        manifest = bundle.manifest
    with pytest.raises(StoreError):
        write_bundle(target, manifest, _lose)
    assert [path.name for path in tmp_path.iterdir()] == ["a.kab"]
    assert target.read_text() == "the one before"


def _lose(digest: Digest) -> bytes:
    from kabuild.base.errors import Reason

    raise StoreError(Reason.BLOB_MISSING, str(digest))


def test_a_manifest_reads_back_as_itself(published: Published) -> None:
    with open_bundle(published.bundle) as bundle:
        assert Manifest.from_json(bundle.manifest.to_json()) == bundle.manifest
