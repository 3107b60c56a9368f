"""A client, a server with an engine, and ``kabuild worker serve``, as people use them."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from kabuild.base.errors import SandboxError
from kabuild.sandbox import probe
from kabuild.store import Store
from tests.cli.test_startup import HEAVY, modules_of
from tests.testkit.cli import CliWorkspace
from tests.testkit.fleet import require_fleet
from tests.testkit.generated import generate, make_old

require_fleet()

import grpc

if probe():
    pytest.skip("no sandboxes here", allow_module_level=True)

from kabuild.worker.service import require_sandboxes
from tests.testkit.engine import StagingEngine
from tests.testkit.reapi_server import ReapiServer
from tests.testkit.signers import allowed, private_key
from tests.testkit.workers import NODE, install_program

ALL = "//tasks/..."
TRUST = '\n[remote]\ntrusted_keys = "fleet.keys"\n'
PATIENCE = 60.0


@dataclass
class Site:
    """One workspace on two machines, and a node of a third one."""

    client: CliWorkspace
    other: CliWorkspace
    node: CliWorkspace
    server: ReapiServer
    engine: StagingEngine
    key: Path
    socket: Path
    program: Path
    said: list[str] = field(default_factory=list)

    @property
    def flags(self) -> tuple[str, ...]:
        return (f"--remote_executor={self.server.url}", f"--remote_worker_program={self.program}")

    def append(self, text: str) -> None:
        file = self.client.root / "WORKSPACE.toml"
        file.write_text(file.read_text() + text)

    def serve(self, *flags: str) -> subprocess.Popen[str]:
        """A node that serves."""
        process = subprocess.Popen(
            self.node.command(
                *("worker", "serve", f"--signing_key={self.key}", f"--socket={self.socket}"), *flags
            ),
            cwd=self.node.root,
            env=self.node.environment(),
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr
        for line in process.stderr:
            self.said.append(line)
            if " serving " in line:
                return process
        raise AssertionError("the node does not serve")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    base = tmp_path_factory.mktemp("site")
    generate(base / "work", 1, shared=1)
    client, other, node = (CliWorkspace(base / "work", base / name) for name in "con")
    client.write("fleet.keys", allowed(NODE))
    (base / "node.key").write_bytes(private_key(NODE))
    socket = base / "node.sock"
    program = install_program(base / "bin", socket)
    with ReapiServer() as server:
        engine = StagingEngine(server, base / "staged")
        site = Site(client, other, node, server, engine, base / "node.key", socket, program)
        site.append(TRUST)
        yield site


@pytest.fixture(scope="module")
def serving(site: Site) -> Iterator[subprocess.Popen[str]]:
    """A node that is told to stop at the end, and stops."""
    process = site.serve("--drain=0")
    try:
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
        assert not site.socket.exists()
    finally:
        process.kill()
        process.wait()


def results_of(store: Path) -> dict[str, Any]:
    """All results in a store by key, without how long they took."""
    with Store.open(store) as opened:
        entries = sorted((store / "ac").glob("*/*"))
        keys = [_digest(opened, entry.name) for entry in entries]
        return {key.hash: opened.actions.get(key) for key in keys}


def _digest(store: Store, hash_: str) -> Any:
    from kabuild.model.digest import Digest

    return Digest(hash_, (store.root / "cas" / hash_[:2] / hash_).stat().st_size)


def test_keys_verdicts_and_bytes_are_those_of_a_local_run(
    site: Site, serving: subprocess.Popen[str]
) -> None:
    """A second machine then finds all in the server's memory, and no node runs anything."""
    here = CliWorkspace(site.client.root, site.client.root.parent / "here").run("test", ALL)
    there = site.client.run("test", ALL, *site.flags)
    ran = len(site.engine.ran)
    again = site.other.run("test", ALL, *site.flags)

    assert (here.code, there.code, again.code) == (0, 0, 0), there.err + again.err
    assert "5 actions: 0 cached, 5 executed (5 by the fleet)" in there.out
    assert "warning" not in there.err + again.err
    assert len(site.engine.ran) == ran == 5
    base = site.client.root.parent
    assert results_of(base / "c") == results_of(base / "here") == results_of(base / "o")
    assert serving.poll() is None


def test_runs_that_are_asked_for_anew_are_run_anew(
    site: Site, serving: subprocess.Popen[str]
) -> None:
    before = len(site.engine.ran)

    flags = ("--runs_per_test=2", "--gates=compile")
    done = site.client.run("test", ALL, *flags, *site.flags)

    assert done.code == 0, done.err
    assert len(site.engine.ran) - before == 2
    assert serving.poll() is None


def test_a_null_build_never_imports_grpc(site: Site) -> None:
    make_old([site.client.root, *site.client.root.iterdir()], 3600)
    assert "grpc" not in modules_of(site.client, "test", ALL, *site.flags)

    assert not modules_of(site.client, "test", ALL, *site.flags) & {*HEAVY, "cryptography"}


def test_a_second_node_finds_its_socket_taken(site: Site, serving: subprocess.Popen[str]) -> None:
    done = site.node.run("worker", "serve", f"--signing_key={site.key}", f"--socket={site.socket}")

    assert (done.code, f"another node serves at {site.socket}" in done.err) == (36, True)
    assert site.socket.exists()
    assert serving.poll() is None


def test_without_a_node_the_failure_says_so(site: Site, tmp_path: Path) -> None:
    client = CliWorkspace(site.client.root, tmp_path / "store")
    site.server.results.clear()
    socket = tmp_path / "nobody.sock"
    program = install_program(tmp_path, socket)

    flags = (site.flags[0], f"--remote_worker_program={program}", "--remote_timeout=5")
    done = client.run("test", ALL, *flags, "--nokeep_going")

    assert done.code == 36
    assert f"a worker of the fleet failed: no node serves at {socket}" in done.out
    assert "Traceback" not in done.out + done.err


def test_the_status_of_a_fleet(site: Site, serving: subprocess.Popen[str]) -> None:
    def status(*flags: str) -> dict[str, str]:
        done = site.other.run("fleet", "status", "--json", *site.flags, *flags)
        assert done.code == (36 if '"PROBLEM"' in done.out else 0), done.err
        assert all(item["advice"] for item in done.json if item["state"] == "PROBLEM")
        return {item["name"]: f"{item['state']} {item['found']}" for item in json.loads(done.out)}

    good = status()
    assert good["fleet execution"] == "ok the server executes actions"
    assert "CPU slots; cpu arch=" in good["any worker"]
    assert "python" in good["any worker toolchains"]
    doctor = site.other.run("doctor", "--json", *site.flags).json
    assert {item["name"] for item in doctor} > good.keys()
    site.client.write("fleet.keys", allowed("somebody"))
    assert "signed with an unknown key" in status()["any worker"]
    site.client.write("fleet.keys", allowed(NODE))
    site.engine.queued.set()
    said = status("--remote_queue_timeout=1")["any worker"]
    assert said == "PROBLEM no worker took the action in 1 s"
    site.engine.queued.clear()
    site.engine.refuse = lambda _: (9, "no such property")
    assert status()["any worker"] == "PROBLEM no such property"
    site.engine.refuse = lambda _: None
    site.server.faults["Execute"] = lambda _: grpc.StatusCode.PERMISSION_DENIED
    assert "PERMISSION_DENIED" in status()["any worker"]
    del site.server.faults["Execute"]
    engine, site.server.engine = site.server.engine, None
    assert status()["fleet execution"] == "PROBLEM the server executes nothing"
    site.server.engine = engine
    assert serving.poll() is None


REFUSED = {
    "no sandbox": (("--sandbox=none",), 36, "a fleet needs sandboxes"),
    "a wrong URL": (("--remote_executor=http://x",), 2, "expected grpc://HOST:PORT"),
    "a relative program": (("--remote_worker_program=run",), 2, "must be an absolute path"),
    "no sign of trust": (("--remote_header=x",), 2, "must be NAME=VALUE"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said_before_anything_runs(site: Site, tmp_path: Path, name: str) -> None:
    flags, code, said = REFUSED[name]
    calls = sum(site.server.calls.values())
    client = CliWorkspace(site.client.root, tmp_path / "store")

    done = client.run("test", ALL, *site.flags, *flags)

    assert (done.code, said in done.err) == (code, True), done.err
    assert sum(site.server.calls.values()) == calls


POOLS = {
    "no pool": ('cuda = { pool = "h200" }', 2, "no pool of [remote.pools] takes 'cpu'"),
    "a text": ('cpu = "cpu"', 1, "'cpu' must be a table of workers' properties"),
    "a number": ("cpu = { pool = 1 }", 1, "'pool' must be a string"),
}


@pytest.mark.parametrize("name", POOLS)
def test_pools_are_checked(tmp_path: Path, name: str) -> None:
    generate(tmp_path / "work", 1, shared=1)
    client = CliWorkspace(tmp_path / "work", tmp_path / "store")
    line, code, said = POOLS[name]
    client.write("fleet.keys", allowed(NODE))
    file = client.root / "WORKSPACE.toml"
    file.write_text(f"{file.read_text()}{TRUST}[remote.pools]\n{line}\n")

    done = client.run("test", ALL, "--remote_executor=grpc://127.0.0.1:1")

    assert (done.code, said in done.err) == (code, True), done.err
    assert "WORKSPACE.toml:" in done.err


def test_a_node_serves_its_numbers_where_asked(site: Site, tmp_path: Path) -> None:
    site = replace(site, socket=tmp_path / "node.sock")
    process, said = site.serve("--drain=0", "--metrics=127.0.0.1:0"), []
    try:
        (url,) = [line.split()[-1] for line in site.said if " metrics at " in line]
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            said = answer.read().decode().splitlines()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0

    assert "kabuild_node_queued_actions 0.0" in said
    assert any(line.startswith("kabuild_node_info{") for line in said)


@pytest.mark.parametrize("address", ["9464", ":9464", "host:", "host:x", "host:65536", "h:-1"])
def test_a_wrong_address_for_numbers_is_refused(site: Site, address: str) -> None:
    done = site.node.run("worker", "serve", f"--signing_key={site.key}", f"--metrics={address}")

    assert (done.code, f"must be HOST:PORT, got '{address}'" in done.err) == (2, True), done.err


def test_a_node_without_a_key_does_not_start(site: Site) -> None:
    flags = ("worker", "serve", f"--socket={site.socket}")

    none = site.node.run(*flags)
    wrong = site.node.run(*flags, "--signing_key=WORKSPACE.toml")

    assert (none.code, wrong.code) == (2, 2)
    assert "--signing_key" in none.err
    assert "--signing_key: WORKSPACE.toml: it is not a private key of OpenSSH" in wrong.err


def test_a_machine_without_sandboxes_is_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kabuild.worker.service.probe", lambda: "this is a test")

    with pytest.raises(SandboxError, match="and this machine has none: this is a test"):
        require_sandboxes()


def test_the_program_is_printed_for_its_socket(site: Site) -> None:
    done = site.node.run("worker", "shim", "--socket=/run/my/node.sock")

    assert done.code == 0
    assert "SOCKET = '/run/my/node.sock'" in done.out
    compile(done.out, "shim", "exec")
