"""A shared cache with TLS: whose certificates count, on both sides, and what the doctor says."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.testkit.cli import CliWorkspace
from tests.testkit.fleet import require_fleet
from tests.testkit.generated import generate

require_fleet()

import grpc

from tests.testkit.certificates import Authority
from tests.testkit.reapi_server import ReapiServer
from tests.testkit.signers import allowed

ALL = "//tasks/..."
WITHOUT = "the rest of this build goes without the shared cache grpc"


@pytest.fixture
def place(tmp_path: Path) -> CliWorkspace:
    generate(tmp_path / "work", 1, shared=1)
    place = CliWorkspace(tmp_path / "work", tmp_path / "store")
    place.write("WORKSPACE.toml", 'name = "t"\n[remote]\ntrusted_keys = "fleet.keys"\n')
    place.write("fleet.keys", allowed("ci"))
    return place


@pytest.fixture
def authority(place: CliWorkspace) -> Authority:
    """One whose certificate lies in ``ca.pem``."""
    made = Authority()
    place.write("ca.pem", made.pem.decode())
    return made


@contextmanager
def serving(issued: tuple[bytes, bytes], clients: bytes | None = None) -> Iterator[ReapiServer]:
    """A server with a certificate; ``clients`` signs those of clients, which then need one."""
    credentials = grpc.ssl_server_credentials(
        [(issued[1], issued[0])], clients, require_client_auth=clients is not None
    )
    with ReapiServer(credentials) as server:
        yield server


def flags(server: ReapiServer, *more: str) -> tuple[str, ...]:
    return (f"--remote_cache=grpcs://localhost:{server.port}", "--remote_retries=0", *more)


def finding(place: CliWorkspace, *flags: str, name: str = "TLS") -> str:
    """What the doctor says of TLS, or of something else."""
    said = place.run("doctor", "--json", *flags).json
    (found,) = [item for item in said if item["name"] == f"cache {name}"] or [None]
    assert found, said
    return f"{found['state']} {found['found']} -> {found['advice']}"


def test_a_certificate_of_the_right_authority_counts(
    place: CliWorkspace, authority: Authority
) -> None:
    with serving(authority.issue("localhost")) as server:
        done = place.run("test", ALL, *flags(server, "--tls_certificate=ca.pem"))
        asked = server.calls["GetActionResult"]
        said = finding(place, *flags(server, "--tls_certificate=ca.pem"))

    assert (done.code, asked) == (0, 5)
    assert WITHOUT not in done.err
    assert said.startswith("ok TLSv1.3, valid until ")


def test_other_certificates_do_not_count(place: CliWorkspace, authority: Authority) -> None:
    """Of an unknown authority, for another host, or too old: nothing is asked of such a server."""
    trusted = "--tls_certificate=ca.pem"
    cases = (
        (authority.issue("localhost"), (), "self-signed certificate|unable to get local issuer"),
        (Authority("other").issue("localhost"), (trusted,), "issuer certificate -> for a private"),
        (
            authority.issue("elsewhere"),
            (trusted,),
            "'localhost'. -> use the name in the certificate",
        ),
        (authority.issue("localhost", days=-1), (trusted,), "has expired -> renew the server's"),
    )
    for number, (issued, more, why) in enumerate(cases):
        fresh = CliWorkspace(place.root, place.store.parent / str(number))
        with serving(issued) as server:
            done = fresh.run("test", ALL, "--gates=compile", *flags(server, *more))
            said = finding(place, *flags(server, *more))
        assert (done.code, done.err.count(WITHOUT)) == (0, 1)
        assert not server.calls
        assert any(part in said for part in why.split("|")), said
        assert said.startswith("PROBLEM")


def test_a_server_may_want_a_certificate(place: CliWorkspace, authority: Authority) -> None:
    certificate, key = authority.issue("somebody")
    place.write("me.pem", certificate.decode())
    place.write("me.key", key.decode())
    own = ("--tls_client_certificate=me.pem", "--tls_client_key=me.key")
    trusted = "--tls_certificate=ca.pem"
    with serving(authority.issue("localhost"), authority.pem) as server:
        without = place.run("test", ALL, *flags(server, trusted))
        asks = finding(place, *flags(server, trusted), name="server")
        assert not server.calls
        fresh = CliWorkspace(place.root, place.store.parent / "fresh")
        done = fresh.run("test", ALL, *flags(server, trusted, *own))

    assert (without.code, done.code) == (0, 0)
    assert "It may want a certificate of yours: --tls_client_certificate" in asks
    assert without.err.count(WITHOUT) == 1
    assert WITHOUT not in done.err
    assert server.calls["GetActionResult"] == 5


def test_half_a_certificate_is_refused(place: CliWorkspace, authority: Authority) -> None:
    done = place.run(
        "test", ALL, "--remote_cache=grpcs://localhost:1", "--tls_client_certificate=ca.pem"
    )

    assert done.code == 2
    assert "--tls_client_certificate and --tls_client_key belong together" in done.err


def test_without_tls_a_server_with_it_is_one_warning(
    place: CliWorkspace, authority: Authority
) -> None:
    with serving(authority.issue("localhost")) as server:
        plain = f"--remote_cache=grpc://localhost:{server.port}"
        done = place.run("test", ALL, plain, "--remote_retries=0")
        (said,) = [
            item
            for item in place.run("doctor", "--json", plain, "--remote_retries=0").json
            if item["name"] == "cache server"
        ]

    assert done.code == 0
    assert done.err.count(WITHOUT) == 1
    assert not server.calls
    assert (said["state"], said["advice"][:17]) == ("PROBLEM", "try TLS (grpcs://")


def test_tls_where_there_is_none_is_named(place: CliWorkspace) -> None:
    """The server's first bytes are those of HTTP/2 without TLS."""
    with socket.create_server(("127.0.0.1", 0)) as door, ThreadPoolExecutor(1) as pool:
        served = pool.submit(_speak_plainly, door)
        port = door.getsockname()[1]
        (said,) = [
            item
            for item in place.run(
                "doctor", "--json", f"--remote_cache=grpcs://127.0.0.1:{port}"
            ).json
            if item["name"] == "cache TLS"
        ]
        served.result()

    assert (said["state"], said["found"]) == ("PROBLEM", "the server answers without TLS")
    assert said["advice"] == "use grpc:// in place of grpcs://"


def _speak_plainly(door: socket.socket) -> None:
    client, _ = door.accept()
    with client, suppress(OSError):
        client.sendall(bytes.fromhex("000000040000000000"))  # an empty SETTINGS frame
        while client.recv(4096):
            pass
