"""Certificates of BuildGrid with the configuration that ``worker config --tls`` prints."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kabuild.base.errors import Reason, RemoteError
from tests.testkit.fleet import require_fleet

require_fleet()

from kabuild.remote.client import RemoteCache
from kabuild.remote.endpoint import Endpoint
from tests.testkit.buildgrid import a_server, lacking
from tests.testkit.certificates import Authority

if why := lacking():
    pytest.skip(why, allow_module_level=True)

AUTHORITY = Authority()


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """That of a server which wants certificates of AUTHORITY."""
    root = tmp_path_factory.mktemp("tls")
    certificate, key = AUTHORITY.issue("localhost")
    (root / "ca.pem").write_bytes(AUTHORITY.pem)
    (root / "server.pem").write_bytes(certificate)
    (root / "server.key").write_bytes(key)
    with a_server(root, root / "kabuild-worker-exec", tls=root) as server:
        yield server.port


def connect(port: int, own: tuple[bytes, bytes] | None, *, secure: bool = True) -> RemoteCache:
    certificate, key = own or (None, None)
    endpoint = Endpoint(
        f"localhost:{port}",
        secure=secure,
        roots=AUTHORITY.pem,
        certificate=certificate,
        key=key,
        timeout=10.0,
        retries=0,
    )
    return RemoteCache.connect(endpoint)


def test_a_certificate_of_its_authority_opens_the_server(port: int) -> None:
    with connect(port, AUTHORITY.issue("client")) as cache:
        assert cache.capabilities.executes


@pytest.mark.parametrize("own", ["none", "expired", "of another authority", "without TLS"])
def test_other_clients_are_refused(port: int, own: str) -> None:
    certificates = {
        "none": None,
        "expired": AUTHORITY.issue("client", days=-1),
        "of another authority": Authority("other").issue("client"),
        "without TLS": None,
    }
    with pytest.raises(RemoteError) as caught:
        connect(port, certificates[own], secure=own != "without TLS")

    assert caught.value.reason is Reason.REMOTE_UNAVAILABLE
