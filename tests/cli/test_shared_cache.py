"""Two machines and a cache between them, as people use it: flags, files, messages, exit codes."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.test_startup import HEAVY, modules_of
from tests.testkit.cli import CliWorkspace
from tests.testkit.fleet import require_fleet
from tests.testkit.generated import generate, make_old

require_fleet()

from tests.testkit.reapi_server import ReapiServer
from tests.testkit.signers import allowed, private_key

ALL = "//tasks/..."
TRUST = '\n[remote]\ntrusted_keys = "fleet.keys"\n'


@pytest.fixture
def server() -> Iterator[ReapiServer]:
    with ReapiServer() as server:
        yield server


class Team:
    """One workspace on two machines; each has a store of its own."""

    def __init__(self, base: Path, server: ReapiServer) -> None:
        generate(base / "work", 2, shared=1)
        self.server = server
        self.key = base / "key"
        self.key.write_bytes(private_key("ci"))
        self.one = CliWorkspace(base / "work", base / "one")
        self.two = CliWorkspace(base / "work", base / "two")
        self.one.write("fleet.keys", allowed("ci"))
        self.append(TRUST)
        make_old([self.one.root, *self.one.root.iterdir()], 3600)

    def append(self, text: str) -> None:
        file = self.one.root / "WORKSPACE.toml"
        file.write_text(file.read_text() + text)

    @property
    def cache(self) -> str:
        return f"--remote_cache={self.server.url}"

    @property
    def upload(self) -> tuple[str, ...]:
        signing = f"--remote_signing_key={self.key}"
        return (self.cache, "--remote_upload_local_results", signing)


@pytest.fixture
def team(tmp_path: Path, server: ReapiServer) -> Team:
    return Team(tmp_path, server)


def test_the_second_machine_executes_nothing(team: Team) -> None:
    """With gRPC in the process sandboxes still work, whatever the user's environment says of it."""
    forking = replace(team.one, env={"GRPC_ENABLE_FORK_SUPPORT": "1"})
    first = forking.start("test", ALL, *team.upload)
    second = team.two.run("test", ALL, team.cache)

    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert "10 actions: 0 cached, 10 executed" in first.out
    assert "not hermetic" not in first.out
    assert "10 actions: 10 cached, 0 executed" in second.out
    assert "warning" not in first.err + second.err
    assert len(team.server.results) == 10


def test_what_was_cached_before_is_not_sent(team: Team) -> None:
    """It may have been imported: the signature says who judged. --help and the page say so."""
    assert team.one.run("test", ALL).code == 0

    again = team.one.run("test", ALL, *team.upload)

    assert "10 actions: 10 cached, 0 executed" in again.out
    assert team.server.results == {}
    said = " ".join(team.one.run("test", "--help").out.split())
    assert "Send what this build executes, signed, to the shared cache; nothing that was" in said


def test_a_null_build_never_imports_grpc(team: Team) -> None:
    """Nor does one whose store has all results, whatever the server does."""
    assert team.one.run("test", ALL, *team.upload).code == 0
    team.server.close()
    assert "grpc" not in modules_of(team.one, "test", ALL, *team.upload)

    assert not modules_of(team.one, "test", ALL, team.cache) & {*HEAVY, "cryptography"}
    assert not modules_of(team.one, "test", ALL) & {*HEAVY, "cryptography"}
    built = modules_of(team.one, "build", f"{ALL}:*.compile", team.cache)
    assert "kabuild.scheduler.build" in built
    assert "grpc" not in built


def test_flags_come_from_a_config(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    team.append(
        textwrap.dedent(f"""
        [config.fleet]
        remote_cache = "{team.server.url}"
        remote_instance_name = "main"
        remote_header = ["authorization=env:TEAM_TOKEN", "x-team=kernels, and more"]
        remote_upload_local_results = true
        remote_signing_key = "{team.key}"
        """)
    )
    team.server.instances = {"main"}
    monkeypatch.setenv("TEAM_TOKEN", "Bearer secret")

    done = team.one.run("test", ALL, "--config=fleet")

    assert done.code == 0, done.err
    assert len(team.server.results) == 10
    headers = team.server.headers[-1]
    assert (headers["authorization"], headers["x-team"]) == ("Bearer secret", "kernels, and more")
    assert "secret" not in done.out + done.err


def test_nobody_there_is_one_warning(team: Team) -> None:
    team.server.close()

    done = team.one.run("test", ALL, team.cache, "--remote_retries=0")

    assert done.code == 0
    assert "10 actions: 0 cached, 10 executed" in done.out
    assert done.err.count("the rest of this build goes without the shared cache grpc://") == 1


def test_a_private_salt_stays_here(team: Team) -> None:
    """The rule of this workspace tells it to all gates of one task."""
    rule = team.one.root / "rules/copied/rule.py"
    rule.write_text(
        rule.read_text().replace(
            'inputs |= {"kernel"',
            'inputs["spec"] = ctx.literal(ctx.options.salt)\n            inputs |= {"kernel"',
        )
    )
    salt = team.one.root.parent / "salt"
    salt.write_text("a salt that nobody knows\n")

    done = team.one.run("test", ALL, f"--unseen_salt_file={salt}", *team.upload)

    assert done.code == 0, done.err
    assert "10 executed" in done.out
    assert not team.server.results
    assert not team.server.blobs
    assert team.server.calls["GetActionResult"] == 0
    assert team.two.run("test", ALL, *team.upload).code == 0
    assert len(team.server.results) == 10, "with the workspace's own salt they are shared"


def test_results_of_a_stranger_do_not_count(team: Team) -> None:
    team.key.write_bytes(private_key("mallory"))
    assert team.one.run("test", ALL, *team.upload).code == 0

    done = team.two.run("test", ALL, team.cache)

    assert "10 executed" in done.out
    assert done.err.count("did not count (10 signed with an unknown key)") == 1


REFUSED = {
    "without keys": (
        ("WORKSPACE.toml", 'name = "generated"\n'),
        (),
        2,
        "WORKSPACE.toml has no [remote] trusted_keys: no result counts",
    ),
    "an absent file": (
        ("WORKSPACE.toml", 'name = "g"\n[remote]\ntrusted_keys = "no.keys"\n'),
        (),
        1,
        "WORKSPACE.toml:3: no.keys: No such file or directory",
    ),
    "a wrong line": (
        ("fleet.keys", "# ours\nci ssh-rsa AAAA\n"),
        (),
        1,
        "fleet.keys:2: a key of kind 'ssh-rsa' is not supported",
    ),
    "an empty file": (("fleet.keys", "# nobody\n"), (), 1, "fleet.keys: it has no key"),
    "upload without a key": (
        None,
        ("--remote_upload_local_results",),
        2,
        "--remote_upload_local_results and --remote_signing_key=FILE belong together",
    ),
    "a key that is none": (
        None,
        ("--remote_upload_local_results", "--remote_signing_key=WORKSPACE.toml"),
        2,
        "--remote_signing_key: WORKSPACE.toml: it is not a private key of OpenSSH",
    ),
    "no sandbox": (None, ("--sandbox=none",), 36, "a shared cache needs sandboxes"),
    "a wrong header": (None, ("--remote_header=Bearer",), 2, "must be NAME=VALUE"),
    "an absent variable": (
        None,
        ("--remote_header=authorization=env:NO_SUCH",),
        2,
        "--remote_header=authorization: the variable NO_SUCH is not set",
    ),
    "a certificate without TLS": (
        None,
        ("--tls_certificate=WORKSPACE.toml",),
        2,
        "--tls_certificate needs a URL with TLS: grpcs://",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_said_before_anything_runs(team: Team, name: str) -> None:
    written, flags, code, said = REFUSED[name]
    if written:
        team.one.write(*written)

    done = team.one.run("test", ALL, team.cache, *flags)

    assert (done.code, done.executed) == (code, set()), done.err
    assert said in done.err
    assert "Traceback" not in done.err
    assert not team.server.calls


def test_a_wrong_url_is_refused_where_it_stands(team: Team) -> None:
    team.append('\n[config.fleet]\nremote_cache = "http://cache"\n')

    typed = team.one.run("test", ALL, "--remote_cache=grpc://cache")
    configured = team.one.run("test", ALL, "--config=fleet")
    both = team.one.run("test", ALL, f"{team.cache}/a", "--remote_instance_name=b")

    assert (typed.code, configured.code, both.code) == (2, 2, 2)
    assert "has no port: write grpc://HOST:PORT" in typed.err
    assert "WORKSPACE.toml:7" in configured.err
    assert "expected grpc://HOST:PORT" in configured.err
    assert "--remote_instance_name=b and the URL's instance 'a' differ" in both.err


@pytest.mark.parametrize("header", ["foo", "=foo", ""])
def test_a_wrong_header_is_refused_without_a_server(team: Team, header: str) -> None:
    ran = team.one.run("test", ALL, f"--remote_header={header}")

    assert ran.code == 2
    assert "--remote_header must be NAME=VALUE or NAME=env:VARIABLE" in ran.err


def test_an_empty_url_goes_without(team: Team) -> None:
    done = team.one.run("test", ALL, team.cache, "--remote_cache=")

    assert done.code == 0
    assert not team.server.calls


def test_what_is_not_installed_is_named(team: Team) -> None:
    hide = team.one.root.parent / "hide"
    hide.mkdir()
    (hide / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "find = u.find_spec\n"
        "u.find_spec = lambda name, *rest: None if name == 'grpc' else find(name, *rest)\n"
    )
    blind = CliWorkspace(team.one.root, team.one.store, {"PYTHONPATH": f"{hide}:{sys.path[0]}"})

    done = blind.start("test", ALL, team.cache)

    assert done.code == 36
    assert "--remote_cache needs grpcio, which is not installed" in done.err
    assert "python -m pip install 'kabuild[fleet]'" in done.err


def test_the_doctor_finds_out_why(team: Team) -> None:
    server, good = team.server, f"--remote_cache={team.server.url}"
    server.instances = {"", "main"}

    def found(*flags: str) -> dict[str, str]:
        done = team.one.run("doctor", "--json", *flags)
        cache = [item for item in done.json if item["name"].startswith("cache ")]
        assert all(item["advice"] for item in cache if item["state"] == "PROBLEM")
        return {item["name"][6:]: f"{item['state']} {item['found']}" for item in cache}

    assert not found()
    assert [text.split()[0] for text in found(good).values()] == ["ok"] * 6
    assert found(f"{good}/man")["server"].startswith("PROBLEM GetCapabilities: INVALID_ARGUMENT")
    assert "instance 'main'" in found(f"{good}/main")["server"]
    assert found("--remote_cache=grpc://no.such.host.invalid:1")["name"].startswith("PROBLEM")
    assert found("--remote_cache=grpc://127.0.0.1:1")["port"].startswith("PROBLEM 1: ")
    assert found("--remote_cache=unix:/no/such")["port"].startswith("PROBLEM /no/such: ")
    assert found(good.replace("grpc:", "grpcs:"))["TLS"].startswith("PROBLEM")
    server.writable = False
    assert found(good)["writing"].startswith("absent UpdateActionResult: PERMISSION_DENIED")
    server.functions = [2]
    assert found(good)["server"] == "PROBLEM the server's digest function is SHA1, expected SHA256"
