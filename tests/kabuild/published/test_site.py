"""``kabuild site``: from bundles to a directory, or one clear error."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from kabuild.bundle.signature import UNSIGNED, sign
from tests.kabuild.published.test_signature import KEYGEN, make_keys
from tests.kabuild.report.test_page import HOSTILE, Elements
from tests.testkit.bundles import with_manifest
from tests.testkit.cli import REPOSITORY, CliWorkspace
from tests.testkit.links import followed_links

if TYPE_CHECKING:
    from pathlib import Path

    from tests.kabuild.published.conftest import Published


@pytest.mark.skipif(KEYGEN is None, reason="needs ssh-keygen")
def test_a_bundle_becomes_a_site_with_all_that_lies_beside_it(
    published: Published, tmp_path: Path
) -> None:
    place = published.elsewhere(tmp_path)
    bundle = place.root / "all.kab"
    bundle.write_bytes(published.bundle.read_bytes())
    key = make_keys(tmp_path, "ada").private
    signature = sign(bundle, key).read_text()
    replayed = place.run("replay", "all.kab", "--json")
    (place.root / "all.kab.replay.json").write_text(replayed.out)

    ran = place.run("site", "all.kab", "all.kab", "-o", "site")

    assert (ran.code, ran.out) == (0, "site/index.html: 6 pages of 1 bundle\n"), ran.err
    digest = replayed.json["bundle"]
    site = place.root / "site"
    assert (site / f"bundles/{digest}.kab").read_bytes() == bundle.read_bytes()
    assert (site / f"bundles/{digest}.kab.sig").read_text() == signature
    page = (site / f"bundles/{digest}.html").read_text()
    assert f"kabuild replay {digest}.kab" in page
    assert "Signed with the ED25519 key SHA256:" in page
    assert "unsigned" not in page
    assert f"Replayed: {replayed.json['totals']['reproduced']} reproduced" in page
    results = json.loads((site / "data.json").read_text())["evaluations"][0]["results"]
    assert [item["gates"]["compile"]["verdict"] for item in results] == ["PASS", "FAIL"]

    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    assert place.run("site", "all.kab", "-o", "site").code == 0
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == before


@pytest.mark.skipif(KEYGEN is None, reason="needs ssh-keygen")
@pytest.mark.parametrize("content", ["a signature", "of another file"])
def test_a_signature_that_is_not_the_bundles_is_not_offered(
    published: Published, tmp_path: Path, content: str
) -> None:
    place = published.elsewhere(tmp_path)
    (place.root / "all.kab").write_bytes(published.bundle.read_bytes())
    if content == "of another file":
        (place.root / "other").write_text("other")
        content = sign(place.root / "other", make_keys(tmp_path, "eve").private).read_text()
    (place.root / "all.kab.sig").write_text(content)

    ran = place.run("site", "all.kab", "-o", "site")

    assert ran.code == 1
    assert "all.kab.sig: the signature belongs to another file" in ran.err
    assert "sign the bundle again" in ran.err
    assert not (place.root / "site").exists()


def test_unsigned_verdicts_are_called_claims(published: Published, tmp_path: Path) -> None:
    place = published.elsewhere(tmp_path)
    (place.root / "all.kab").write_bytes(published.bundle.read_bytes())

    ran = place.run("site", "all.kab", "-o", "site")

    assert ran.code == 0, ran.err
    (page,) = (place.root / "site/bundles").glob("*.html")
    for path in (page, place.root / "site/index.html"):
        assert UNSIGNED.lower() in path.read_text().lower()
    assert not [*(place.root / "site/bundles").glob("*.sig")]


def test_what_a_manifest_says_of_itself_is_text(published: Published, tmp_path: Path) -> None:
    def edit(manifest: dict[str, Any]) -> None:
        manifest["kabuild"] = HOSTILE
        manifest["platform"] |= {"device": HOSTILE, HOSTILE: HOSTILE}
        manifest["request"] |= {"agent": f"{HOSTILE}/../..", "policy": HOSTILE, HOSTILE: [HOSTILE]}

    with_manifest(published.bundle, tmp_path / "odd.kab", edit)
    place = published.elsewhere(tmp_path)
    ran = place.run("site", "../odd.kab", "-o", "site", f"--title={HOSTILE}")
    assert ran.code == 0, ran.err
    pages = sorted((place.root / "site").rglob("*.html"))
    assert len(pages) == 6
    for path in pages:
        found = Elements(path.read_text())
        assert found.tags.count("script") == 1
        assert "img" not in found.tags
        assert not found.handlers
        assert path.parent.parent in {place.root, place.root / "site"}


def test_what_this_repository_published_is_a_site(tmp_path: Path) -> None:
    bundles = sorted(map(str, REPOSITORY.glob("results/*/*.kab")))
    ran = CliWorkspace.make(tmp_path).run("site", *bundles, "-o", "../site")
    assert ran.code == 0, ran.err
    assert ran.out.endswith(f"of {len(bundles)} bundles\n")
    assert followed_links(tmp_path / "site") > 500


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "missing argument 'BUNDLE...'"),
        (("all.kab",), 2, "missing option '--output' / '-o'"),
        (("absent.kab", "-o", "s"), 2, "absent.kab: No such file or directory"),
        (("all.kab", "cut.kab", "-o", "s"), 1, "error: cut.kab is damaged or not a bundle"),
        (("WORKSPACE.toml", "-o", "s"), 1, "error: WORKSPACE.toml is damaged or not a bundle"),
        (("tasks", "-o", "s"), 2, "tasks: Is a directory"),
        (("all.kab", "-o", "tasks"), 2, "has files that 'kabuild site' did not write: mine"),
        (("all.kab", "-o", "WORKSPACE.toml"), 2, "is not a directory"),
        (("all.kab", "-o", "absent/s"), 2, "is not a directory"),
        (("odd.kab", "-o", "s"), 1, "odd.kab.replay.json is not the output of kabuild replay"),
        (("pipe.kab", "-o", "s"), 2, "error: pipe.kab.replay.json: is a device or a pipe"),
        (("device.kab", "-o", "s"), 2, "error: device.kab.sig: is a device or a pipe"),
    ],
)
def test_bad_input_is_one_error_and_no_site(
    published: Published, tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    place = published.elsewhere(tmp_path)
    whole = published.bundle.read_bytes()
    for name in ("all", "cut", "odd", "pipe", "device"):
        (place.root / f"{name}.kab").write_bytes(whole[:2000] if name == "cut" else whole)
    os.mkfifo(place.root / "pipe.kab.replay.json")
    (place.root / "device.kab.sig").symlink_to("/dev/zero")
    (place.root / "odd.kab.replay.json").write_text("{}")
    place.write("tasks/mine", "")

    ran = place.run("site", *arguments)

    assert ran.code == code
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert not (place.root / "s").exists()
