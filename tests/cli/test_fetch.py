"""Fetching toolchains, with the real program against indexes on the loopback interface."""

from __future__ import annotations

import gzip
import hashlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.testkit.archives import Member, deb, tar, wheel
from tests.testkit.cli import CliWorkspace, Ran
from tests.testkit.fileserver import FileServer, serving

WHEEL = "tool_cc-1.0-py3-none-any.whl"
HEADERS = "tool_headers-1.0-py3-none-any.whl"
PATH = f"/files/{WHEEL}"
PINS = """\
[[toolchain]]
name = "cc"
role = "c++-compiler"
pypi = ["tool-cc==1.0", "tool-headers==1.0"]
"""


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving() as server:
        noise = bytes(os.urandom(300_000))
        files = {"cc/bin/cc": noise}
        server.serve_project("tool-cc", WHEEL, wheel(files, {"cc/bin/cc": 0o100755}))
        server.serve_project("tool-headers", HEADERS, wheel({"cc/include/cc.h": b"#define CC\n"}))
        yield server


@pytest.fixture
def pinned(tmp_path: Path, server: FileServer) -> CliWorkspace:
    """A workspace that pins two wheels of the index, and its lock."""
    workspace = CliWorkspace.make(tmp_path)
    workspace.env.update(
        PIP_INDEX_URL=f"{server.url}/simple",
        PIP_EXTRA_INDEX_URL="",
        PIP_CONFIG_FILE=os.devnull,
        KABUILD_APT_SOURCES=str(tmp_path / "apt"),
        no_proxy="127.0.0.1",
    )
    workspace.write("toolchains/my/BUILD.toml", PINS)
    locked = workspace.run("toolchain", "lock")
    assert locked.code == 0, locked.err
    server.requests.clear()
    return workspace


def fetch(workspace: CliWorkspace, *arguments: str) -> Ran:
    return workspace.run("toolchain", "fetch", "cc", *arguments)


def tree_of(workspace: CliWorkspace) -> Path:
    """The one tree in the store."""
    (tree,) = (workspace.store / "toolchains").glob("*/tree")
    return tree


def nothing_is_kept(workspace: CliWorkspace) -> bool:
    return not [*(workspace.store / "toolchains").glob("*/manifest.json")]


def start(workspace: CliWorkspace, command: str = "fetch") -> subprocess.Popen[str]:
    return subprocess.Popen(
        workspace.command("toolchain", command, "cc"),
        cwd=workspace.root,
        env=workspace.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_pin_becomes_a_tree(pinned: CliWorkspace, server: FileServer) -> None:
    before = pinned.run("toolchain", "verify", "cc")
    said = "//toolchains/my:cc: to fetch: kabuild toolchain fetch //toolchains/my:cc"
    assert (before.code, before.out.strip()) == (36, said)
    ran = fetch(pinned)

    assert ran.code == 0, ran.err
    tree = tree_of(pinned)
    assert (tree / "cc/include/cc.h").read_text() == "#define CC\n"
    assert os.access(tree / "cc/bin/cc", os.X_OK)
    assert ran.out.strip().endswith(str(tree))
    assert "fetched //toolchains/my:cc" in ran.err
    lock = (pinned.root / "toolchains/lock.toml").read_text()
    assert "127.0.0.1" not in lock
    assert pinned.run("toolchain", "verify", "cc").code == 0


def test_one_that_cannot_be_had_keeps_nobody_from_the_rest(pinned: CliWorkspace) -> None:
    pinned.write("toolchains/ab/BUILD.toml", PINS.replace('"cc"', '"ab"'))

    ran = pinned.run("toolchain", "fetch", "ab", "cc")

    assert ran.code == 45
    assert "//toolchains/ab has no entry in the lock" in ran.err
    assert (tree_of(pinned) / "cc/include/cc.h").is_file()


def test_a_tree_that_lacks_what_is_required_is_not_kept(pinned: CliWorkspace) -> None:
    build_file = pinned.root / "toolchains/my/BUILD.toml"
    build_file.write_text(f'{PINS}requires = ["cc/bin/cc", "cc/bin/ld|cc/bin/lld"]\n')

    ran = fetch(pinned)

    assert ran.code == 45
    assert "has no cc/bin/ld|cc/bin/lld, which its declaration requires" in ran.err
    assert "toolchains/my/BUILD.toml:1" in ran.err
    assert nothing_is_kept(pinned)

    build_file.write_text(f'{PINS}requires = ["cc/bin/cc", "cc/bin/ld|cc/include"]\n')
    assert fetch(pinned).code == 0, "and no new lock is needed"


def test_what_is_there_needs_no_network(pinned: CliWorkspace, server: FileServer) -> None:
    fetch(pinned)
    asked = len(server.requests)
    server.files.clear()

    assert fetch(pinned).code == 0
    assert pinned.run("toolchain", "show", "cc", "--json").json["state"] == "ready"
    assert len(server.requests) == asked


def test_for_an_agent_without_its_secret_nothing_is_fetched(
    pinned: CliWorkspace, server: FileServer
) -> None:
    """Nor would it run: where it would, it is told what it lacks."""
    pinned.write("toolchains/my/BUILD.toml", PINS.replace("c++-compiler", "agent-cli"))
    agent = 'name = "mine"\ncommand = ["cc"]\ncli = "//toolchains/my:cc"\nsecrets = ["CC_KEY"]\n'
    pinned.write("agents/BUILD.toml", f"[[agent]]\n{agent}")

    assert pinned.run("build", "//agents:mine").code == 0
    assert server.requests == []

    pinned.env["CC_KEY"] = "correct-horse"
    assert pinned.run("build", "//agents:mine").code == 0
    assert len(server.asked(PATH)) == 1


def test_two_at_once_download_once(pinned: CliWorkspace, server: FileServer) -> None:
    server.stalls.add(PATH)
    first, second = start(pinned), start(pinned)
    assert server.stalled.wait(60)
    server.release.set()

    for process in (first, second):
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
    assert len(server.asked(PATH)) == 1
    assert not [*(pinned.store / "toolchains").glob("*.fetch")]


def test_killed_in_the_middle_it_goes_on_from_there(
    pinned: CliWorkspace, server: FileServer
) -> None:
    server.stalls.add(PATH)
    process = start(pinned)
    assert server.stalled.wait(60)
    part = arriving(pinned)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert nothing_is_kept(pinned)
    size = part.stat().st_size
    server.release.set()

    assert fetch(pinned).code == 0
    assert server.asked(PATH) == ["", f"bytes={size}-"]
    assert pinned.run("toolchain", "verify", "cc").code == 0


def arriving(workspace: CliWorkspace) -> Path:
    """The partial file, once most of it is on disk."""
    while True:
        for part in (workspace.store / "toolchains").glob("*.fetch/*.part"):
            if part.stat().st_size > 200_000:
                return part


@pytest.mark.parametrize("body", ["corrupted", "truncated"])
def test_a_bad_body_is_refused(pinned: CliWorkspace, server: FileServer, body: str) -> None:
    whole = server.files[PATH]
    server.files[PATH] = whole[:-3] + b"bad" if body == "corrupted" else whole[:-3]

    ran = fetch(pinned)

    assert ran.code == (45 if body == "corrupted" else 36)
    assert WHEEL in ran.err
    assert "toolchains/my/BUILD.toml:1" in ran.err
    assert nothing_is_kept(pinned)

    server.files[PATH] = whole
    assert fetch(pinned).code == 0


def test_an_index_that_says_another_digest_is_not_asked_for_the_file(
    pinned: CliWorkspace, server: FileServer
) -> None:
    server.files["/simple/tool-cc/"] = b""
    server.serve_project("tool-cc", WHEEL, b"other", fragment=f"#sha256={'0' * 64}")

    ran = fetch(pinned)

    assert ran.code == 45
    assert f"digest mismatch for {WHEEL}" in ran.err
    assert f"indexes:   sha256:{'0' * 64}" in ran.err
    assert not server.asked(PATH)


def test_the_lock_decides_and_not_the_index(pinned: CliWorkspace, server: FileServer) -> None:
    lock = pinned.root / "toolchains/lock.toml"
    digest = hashlib.sha256(server.files[PATH]).hexdigest()
    lock.write_text(lock.read_text().replace(digest, "0" * 64))

    ran = fetch(pinned)

    assert ran.code == 45
    assert f"digest mismatch for {WHEEL}" in ran.err
    assert f"specified: sha256:{'0' * 64}" in ran.err
    assert f"got:       sha256:{digest}" in ran.err


def test_what_is_pinned_while_a_lock_is_written_stays(
    pinned: CliWorkspace, server: FileServer, tmp_path: Path
) -> None:
    (tmp_path / "tree/bin").mkdir(parents=True)
    (tmp_path / "tree/bin/ld").touch()
    pinned.write("toolchains/ld/BUILD.toml", PINS.replace('"cc"', '"ld"'))
    server.stalls.add("/simple/tool-cc/")
    locking = start(pinned, "lock")
    assert server.stalled.wait(60)
    home = ("--from", str(tmp_path / "tree"), "--path", "bin")
    assert pinned.run("toolchain", "pin", "ld", *home).code == 0
    server.release.set()

    _, err = locking.communicate(timeout=60)
    assert locking.returncode == 0, err
    assert "parts:       bin\n" in pinned.run("toolchain", "show", "ld").out


def test_an_archive_that_would_escape_leaves_nothing(
    pinned: CliWorkspace, server: FileServer
) -> None:
    evil = tar([Member("good", b"good"), Member("../../../escaped", b"evil")])
    server.files["/evil.tar.gz"] = evil
    url, digest = f"{server.url}/evil.tar.gz", hashlib.sha256(evil).hexdigest()
    pinned.write(
        "toolchains/evil/BUILD.toml",
        f'[[toolchain]]\nname = "evil"\nrole = "r"\narchive = "{url}"\nsha256 = "{digest}"\n',
    )
    assert pinned.run("toolchain", "lock").code == 0
    lock = (pinned.root / "toolchains/lock.toml").read_text()
    assert "127.0.0.1" not in lock

    ran = pinned.run("toolchain", "fetch", "evil")

    assert ran.code == 45
    assert "which may lead out of it" in ran.err
    assert nothing_is_kept(pinned)
    assert not [*pinned.store.parent.rglob("escaped")]


def test_a_debian_package(pinned: CliWorkspace, server: FileServer, tmp_path: Path) -> None:
    package = deb([Member("./usr/include/half.h", b"half")])
    server.files["/debian/pool/h/half_1-2_all.deb"] = package
    stanza = (
        "Package: half-dev\nVersion: 1-2\nFilename: pool/h/half_1-2_all.deb\n"
        f"Size: {len(package)}\nSHA256: {hashlib.sha256(package).hexdigest()}\n\n"
    )
    for arch in ("amd64", "arm64"):
        directory = f"/debian/dists/stable/main/binary-{arch}"
        server.files[f"{directory}/Packages.gz"] = gzip.compress(stanza.encode())
    (tmp_path / "apt").mkdir()
    (tmp_path / "apt/sources.list").write_text(f"deb {server.url}/debian stable main\n")
    pinned.write(
        "toolchains/half/BUILD.toml",
        '[[toolchain]]\nname = "half"\nrole = "r"\ndeb = ["half-dev=1-2"]\nstrip_prefix = "usr"\n',
    )

    assert pinned.run("toolchain", "lock").code == 0
    ran = pinned.run("toolchain", "fetch", "half")

    assert ran.code == 0, ran.err
    assert (tree_of(pinned) / "include/half.h").read_text() == "half"


def test_a_change_in_the_store_is_found_and_mended(pinned: CliWorkspace) -> None:
    fetch(pinned)
    header = tree_of(pinned) / "cc/include/cc.h"
    header.chmod(0o644)
    header.write_text("#define EVIL\n")

    ran = pinned.run("toolchain", "verify", "cc")
    assert ran.code == 45
    assert "cc/include/cc.h: changed" in ran.out
    assert "kabuild toolchain fetch --force" in ran.out

    assert fetch(pinned, "--force").code == 0
    assert pinned.run("toolchain", "verify", "cc").code == 0


def test_a_changed_pin_needs_a_new_lock(pinned: CliWorkspace) -> None:
    pinned.write("toolchains/my/BUILD.toml", PINS.replace("headers==1.0", "headers==1.1"))

    ran = fetch(pinned)
    assert ran.code == 45
    assert "changed since it was locked" in ran.err
    assert "kabuild toolchain lock //toolchains/my:cc" in ran.err

    ran = pinned.run("toolchain", "lock")
    assert ran.code == 36
    assert "no wheel of tool-headers 1.1" in ran.err
    assert "the newest versions are: 1.0" in ran.err


def test_without_the_right_to_fetch(pinned: CliWorkspace) -> None:
    """A build fetches what it needs; with --nofetch it says how to."""
    pinned.write("hip/BUILD.toml", '[[hip_cpu]]\nname = "hip"\ncompiler = "//toolchains/my:cc"\n')

    ran = pinned.run("build", "--nofetch", "//hip")

    assert ran.code == 36
    assert "is not in the store, and nothing may be fetched" in ran.err
    assert "kabuild toolchain fetch //toolchains/my:cc" in ran.err
