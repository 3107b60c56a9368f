"""Reports of bundles and of workspaces are made alike."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from tests.testkit.bundles import with_manifest
from tests.testkit.cli import CliWorkspace
from tests.testkit.generated import generate

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kabuild.published.conftest import Published


def test_a_bundle_reports_what_its_evaluation_reports(published: Published, tmp_path: Path) -> None:
    theirs = published.elsewhere(tmp_path).run("report", str(published.bundle), "--format=json")
    ours = published.workspace.run("report", "//...", "--format=json")
    (there,), (here,) = theirs.json["evaluations"], ours.json["evaluations"]

    assert theirs.code == 0
    assert there["source"] == str(published.bundle)
    assert there["toolchains"] == here["toolchains"]
    assert there["results"] == here["results"], "with what an earlier gate stopped"
    assert there["digest"] == here["digest"]
    said = [item["gates"]["compile"]["verdict"] for item in here["results"]]
    assert said == ["PASS", "FAIL"]


def test_several_are_shown_side_by_side(published: Published, tmp_path: Path) -> None:
    bundle = str(published.bundle)
    ran = published.elsewhere(tmp_path).run("report", bundle, bundle, "--format=md")
    assert f"| task | expert ({bundle}) | expert ({bundle}) (2) |" in ran.out
    assert "compile: WRONG_RESULT" in ran.out


def test_what_several_wrote_for_the_arena_reads_back(published: Published, tmp_path: Path) -> None:
    bundle = str(published.bundle)
    workspace = published.elsewhere(tmp_path)
    wrote = workspace.run("report", bundle, bundle, "--format=arena", "-o", "runs")
    assert wrote.code == 0, wrote.err

    again = workspace.run("report", "runs", "--format=json").json["evaluations"]

    assert [item["source"] for item in again] == [
        str(path.relative_to(workspace.root)) for path in sorted(workspace.root.glob("runs/*"))
    ]
    assert [len(item["results"]) for item in again] == [2, 2]


def test_a_damaged_one_is_named(published: Published, tmp_path: Path) -> None:
    (tmp_path / "cut.kab").write_bytes(published.bundle.read_bytes()[:2000])
    ran = published.elsewhere(tmp_path).run("report", str(published.bundle), "../cut.kab")
    assert ran.code != 0
    assert ran.err.startswith("error: ../cut.kab is damaged or not a bundle: it ends early\n")


def test_so_is_one_whose_verdict_is_none(published: Published, tmp_path: Path) -> None:
    data = b"no verdict"
    hash_ = sha256(data).hexdigest()

    def edit(manifest: dict[str, Any]) -> None:
        action = next(item for item in manifest["actions"] if item["gate"])
        action["files"] = [["verdict.json", f"{hash_}/{len(data)}", False]]
        manifest["blobs"][hash_] = len(data)

    path = tmp_path / "odd.kab"
    with_manifest(published.bundle, path, edit, {f"blobs/{hash_}": data})
    ran = published.elsewhere(tmp_path).run("report", str(published.bundle), "../odd.kab")
    assert ran.err.startswith("error: ../odd.kab: verdict.json of //tasks/")
    assert "is not a JSON object" in ran.err


def test_the_page_goes_to_out(published: Published) -> None:
    ran = published.workspace.run("report", "//...")
    assert ran.code == 0
    page = published.workspace.root / "out/report.html"
    assert ran.out.strip() == str(page)
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_what_the_machine_failed_stays_visible(tmp_path: Path) -> None:
    generate(tmp_path / "work", 1, shared=1, age=0)
    workspace = CliWorkspace(tmp_path / "work", tmp_path / "store")
    rule = workspace.root / "rules/copied/rule.py"
    rule.write_text(rule.read_text().replace("cp $v out/verdict.json", "exit 1"))
    ran = workspace.run("report", "//...", "--format=csv")
    assert ran.code == 36
    assert "INFRA" in ran.out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("absent.kab",), 2, "absent.kab: No such file or directory"),
        (("//...", "--format=pdf"), 2, "'pdf' is not one of"),
        (("//...", "-o", "WORKSPACE.toml/r.html"), 2, "WORKSPACE.toml/r.html"),
        (("//absent/...",), 2, "no package below"),
        (("tasks",), 2, "tasks is neither a package nor a directory with results"),
    ],
)
def test_bad_input_is_one_line(
    published: Published, arguments: tuple[str, ...], code: int, message: str
) -> None:
    ran = published.workspace.run("report", *arguments)
    assert ran.code == code
    assert message in ran.err
    assert "Traceback" not in ran.err
