"""``kabuild cache``, with the real program and results of real builds."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kabuild.base.seal import KEY_FILE, data_home
from tests.testkit.cli import CliWorkspace, copy_store

from .conftest import declare

FAST = "--gates=compile,correctness"
OLD = 1_600_000_000


@pytest.fixture(scope="module")
def built(module_workspace: CliWorkspace) -> CliWorkspace:
    """A workspace whose one task was judged."""
    declare(module_workspace, "double")
    assert module_workspace.run("test", "//double", FAST).code == 0
    return module_workspace


@pytest.fixture
def judged(built: CliWorkspace, tmp_path: Path) -> CliWorkspace:
    """The same at another place, free to be changed."""
    return built.copy(tmp_path)


def grow_old(store: Path) -> None:
    for kind in ("ac", "cas"):
        for path in (store / kind).rglob("*"):
            os.utime(path, (OLD, OLD))


def damage_an_output(workspace: CliWorkspace) -> Path:
    """Change one byte of the compiled kernel."""
    library = max((workspace.store / "cas").rglob("*"), key=lambda path: path.stat().st_size)
    data = bytearray(library.read_bytes())
    data[len(data) // 2] ^= 1
    library.unlink()  # the copy shares it with other tests
    library.write_bytes(data)
    return library


def test_stats(judged: CliWorkspace) -> None:
    ran = judged.run("cache", "stats", "--json")

    assert ran.code == 0, ran.err
    assert ran.json["results"]["count"] >= 4
    assert ran.json["limit"] == 20 << 30
    assert "limit from default" in judged.run("cache", "stats").out


def test_the_limit_is_what_the_workspace_says(judged: CliWorkspace) -> None:
    file = judged.root / "WORKSPACE.toml"
    file.write_text(f'{file.read_text()}\n[cache]\nsize = "3G"\n')

    assert "of 3.0 GB" in judged.run("cache", "stats").out


def test_a_limit_without_a_unit_is_doubted(judged: CliWorkspace) -> None:
    file = judged.root / "WORKSPACE.toml"
    said = "warning:     a limit of 50 bytes keeps nothing; with a unit: 50G, 500M\n"
    assert "warning" not in judged.run("cache", "stats").out

    file.write_text(f'{file.read_text()}\n[cache]\nsize = "50"\n')

    assert said in judged.run("cache", "stats").out


def test_gc_removes_what_is_old_and_the_next_build_makes_it_again(judged: CliWorkspace) -> None:
    grow_old(judged.store)
    foreseen = judged.run("cache", "gc", "--max_size=0", "--dry_run")

    ran = judged.run("cache", "gc", "--max_size=0")

    assert ran.code == 0, ran.err
    assert ran.out == foreseen.out.replace("would remove", "removed")
    assert judged.run("cache", "stats", "--json").json["blobs"]["count"] == 0
    ran = judged.run("test", "//double", "--gates=compile")
    assert ran.code == 0
    assert ran.executed


def test_gc_says_when_it_cannot(judged: CliWorkspace) -> None:
    assert judged.run("test", "//double", FAST).code == 0

    ran = judged.run("cache", "gc", "--max_size=0")

    assert ran.code == 0
    assert "the rest is pinned or recently used" in ran.out
    assert not judged.run("test", "//double", FAST).executed


def test_builds_go_on_while_the_store_is_collected(judged: CliWorkspace, tmp_path: Path) -> None:
    """All that they find is old, and somebody is just taking it away."""
    declare(judged, "other")
    grow_old(judged.store)
    builds = [
        subprocess.Popen(
            judged.command("test", f"//{name}", "--gates=compile"),
            cwd=judged.root,
            env=judged.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for name in ("double", "other")
    ]
    while any(build.poll() is None for build in builds):
        assert judged.run("cache", "gc", "--max_size=0").code == 0

    for build in builds:
        out, _ = build.communicate()
        assert build.returncode == 0, out
    assert judged.run("cache", "verify").code == 0


def test_verify_names_damage_and_what_it_breaks(judged: CliWorkspace) -> None:
    assert judged.run("cache", "verify").code == 0
    library = damage_an_output(judged)

    ran = judged.run("cache", "verify")
    assert ran.code == 36
    assert f"blob {library.name}: its content is" in ran.out
    assert "breaks result" in ran.out
    assert library.exists()

    ran = judged.run("cache", "verify", "--remove")
    assert ran.code == 0
    assert "; removed" in ran.out
    assert not library.exists()
    assert judged.run("test", "//double", "--gates=compile").code == 0
    assert judged.run("cache", "verify").code == 0


def test_verify_as_json(judged: CliWorkspace) -> None:
    library = damage_an_output(judged)

    (found,) = judged.run("cache", "verify", "--json").json

    assert (found["kind"], found["name"], found["removed"]) == ("blob", library.name, False)
    assert found["breaks"]


@pytest.fixture
def key(judged: CliWorkspace, tmp_path: Path) -> Iterator[Path]:
    """A copy of the key that sealed the results, for this test's program alone."""
    judged.env["XDG_DATA_HOME"] = str(tmp_path)  # of all copies of the workspace
    copy = data_home(judged.env) / KEY_FILE
    copy.parent.mkdir()
    copy.write_bytes((data_home() / KEY_FILE).read_bytes())
    copy.chmod(0o600)
    yield copy
    del judged.env["XDG_DATA_HOME"]


def test_an_intact_store_is_not_damaged_by_the_mode_of_the_key(
    judged: CliWorkspace, key: Path
) -> None:
    key.chmod(0o644)

    for flags in ((), ("--remove",), ("--json",)):
        ran = judged.run("cache", "verify", *flags)
        assert (ran.code, ran.out) == (36, "")
        assert f"no key to check the store with: {key}: others can read it" in ran.err
        assert f"chmod 600 {key}" in ran.err
    found = {item["name"]: item for item in judged.run("doctor", "--json").json}["seal key"]
    assert found["state"] == "warning"
    assert f"chmod 600 {key}" in found["found"]

    key.chmod(0o600)
    ran = judged.run("cache", "verify")
    assert (ran.code, "no damage found\n" in ran.out) == (0, True)


def test_what_another_key_sealed_is_not_damaged(judged: CliWorkspace, key: Path) -> None:
    old = key.rename(key.with_name("old"))

    ran = judged.run("cache", "verify")
    assert ran.code == 36
    assert re.search(r"no damage found; \d+ not sealed by you\n", ran.out)
    assert f"put that key back as {key}\n" in ran.out
    assert "breaks" not in ran.out

    old.replace(key)
    assert judged.run("cache", "verify").code == 0
    key.unlink()
    ran = judged.run("cache", "verify", "--remove")
    assert ran.code == 0
    assert "not sealed by you, now removed\n" in ran.out
    assert "no damage found\n" in judged.run("cache", "verify").out


def test_another_machine_need_not_judge_again(judged: CliWorkspace, tmp_path: Path) -> None:
    file = tmp_path / "double.kcache"
    ran = judged.run("cache", "export", str(file), "//double")
    assert ran.code == 0, ran.err
    (tmp_path / "elsewhere").mkdir()
    elsewhere = CliWorkspace.make(tmp_path / "elsewhere")
    declare(elsewhere, "double")

    ran = elsewhere.run("cache", "import", str(file))
    assert ran.code == 0, ran.err
    ran = elsewhere.run("test", "//double", FAST)

    assert ran.code == 0
    assert not ran.executed


def test_patterns_choose(judged: CliWorkspace, tmp_path: Path) -> None:
    ran = judged.run("cache", "export", str(tmp_path / "part"), "//double:double.compile")
    assert ran.code == 0, ran.err
    assert judged.run("cache", "export", str(tmp_path / "all")).code == 0

    assert (tmp_path / "part").stat().st_size < (tmp_path / "all").stat().st_size


def test_a_tampered_export_is_refused(judged: CliWorkspace, tmp_path: Path) -> None:
    file = tmp_path / "x.kcache"
    judged.run("cache", "export", str(file))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    other = CliWorkspace(judged.root, tmp_path / "other")

    ran = other.run("cache", "import", str(file))

    assert ran.code == 1
    assert "nothing was imported" in ran.err
    assert other.run("cache", "stats", "--json").json["results"]["count"] == 0


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("gc", "--max_size=lots"), 2, "'lots' is not a valid size; write 20G or 500M"),
        (("gc", "--max_size=-1"), 2, "is not a valid size"),
        (("import", "/nonexistent"), 2, "does not exist"),
        (("import", "WORKSPACE.toml"), 1, "nothing was imported"),
        (("import", "--max_bytes=many", "WORKSPACE.toml"), 2, "is not a valid size"),
        (("export", "/nonexistent/x"), 2, "No such file or directory"),
        (("export", "x", "//nothing"), 2, "//nothing"),
        (("export", "x", "--agent=none"), 2, "need a pattern"),
        (("stats", "everything"), 2, "unexpected extra argument"),
        (("verify", "--fix"), 2, "no option"),
    ],
)
def test_bad_requests(
    built: CliWorkspace, arguments: tuple[str, ...], code: int, words: str
) -> None:
    ran = built.run("cache", *arguments)

    assert ran.code == code, ran.err
    assert words in ran.err


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"KABUILD_CACHE_SIZE": "huge"}, "KABUILD_CACHE_SIZE: 'huge' is not a valid size"),
        ({"KABUILD_CACHE": "/proc/nowhere"}, "the store at /proc/nowhere"),
    ],
)
def test_bad_settings(built: CliWorkspace, env: dict[str, str], words: str) -> None:
    workspace = CliWorkspace(built.root, built.store)
    environment = {**workspace.environment(), **env}
    ran = subprocess.run(
        workspace.command("cache", "gc"),
        cwd=built.root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode in {2, 36}
    assert words in ran.stderr


def test_an_empty_store_has_nothing_to_export(workspace: CliWorkspace) -> None:
    ran = workspace.run("cache", "export", "x")

    assert ran.code == 2
    assert "the store has no result" in ran.err
    assert "kabuild test //..." in ran.err


def test_outside_of_a_workspace_it_works_as_well(built: CliWorkspace, tmp_path: Path) -> None:
    copy_store(built.store, tmp_path / "store")
    nowhere = CliWorkspace(tmp_path, tmp_path / "store")

    assert nowhere.run("cache", "stats").code == 0
    assert nowhere.run("cache", "gc").code == 0
    assert nowhere.run("cache", "verify").code == 0
