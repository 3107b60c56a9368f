"""What ``doctor`` finds of a server: each thing that has to be right, in order."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from kabuild.base.errors import InfraError, KabuildError, RemoteError
from kabuild.cli.finding import Finding, State
from kabuild.loading.request import RemoteRequest
from kabuild.model.digest import EMPTY, Digest
from kabuild.remote.endpoint import Endpoint
from kabuild.sharing import CACHE_FLAG, EXECUTOR_FLAG, endpoint_of, require_packages

if TYPE_CHECKING:
    from kabuild.remote.client import RemoteCache

_WHO = {CACHE_FLAG: "cache", EXECUTOR_FLAG: "fleet"}

_PATIENCE = 5.0
"""Seconds for a name, a port and a handshake each."""

_UNTRUSTED = "for a private authority, pass its certificate: --tls_certificate=FILE"
_VERIFIED = {
    9: "it is not valid yet: check the clocks of both machines",
    10: "renew the server's certificate; if it is still valid, this machine's clock is wrong",
    62: "use the name in the certificate as host of the URL, or issue one for this name",
}
"""What helps against a certificate that OpenSSL refuses with such a code."""

REFUSED = "the token or certificate does not allow this: ask the server's operator"
_UNWELCOME = (
    "the server ends the connection. It may want a certificate of yours: --tls_client_certificate, "
    "--tls_client_key"
)
_UNWELCOME_WITH = (
    "the server ends the connection. It may refuse your certificate: 'openssl x509 -noout -enddate "
    "-issuer -in FILE' shows until when it is valid, and who signed it"
)

_KEY = Digest.of(b"kabuild doctor\n")
"""The output of the doctor's test entry, which is unsigned and so never a result."""

_ENTRY = b"\x4a\x00"
"""An ``ActionResult`` with empty metadata and nothing else."""


def find_cache(remote: RemoteRequest) -> Iterator[Finding]:
    """Of a shared cache: what ``find_server`` finds, and whether it may be written.

    Checks that depend on a failed one are skipped. Raises UsageError for flags.
    """
    with ExitStack() as connection:
        server = yield from find_server(remote, CACHE_FLAG, connection)
        if server is not None:
            yield _written(server)


def find_server(
    remote: RemoteRequest, flag: str, connection: ExitStack
) -> Generator[Finding, None, RemoteCache | None]:
    """Name, port, TLS, what the server of ``flag`` says of itself, and whether it may be read.

    Returns the server, which ``connection`` closes; None if something is wrong. Checks
    that depend on a failed one are skipped. Raises UsageError for flags.
    """
    who = _WHO[flag]
    try:
        require_packages(flag)
    except InfraError as error:
        yield problem(f"{who} packages", error)
        return None
    endpoint = endpoint_of(remote, Path.cwd(), flag)
    for finding in _reached(endpoint, remote, who):
        yield finding
        if finding.state is State.PROBLEM:
            return None
    return (yield from _asked(endpoint, who, connection))


def _reached(endpoint: Endpoint, remote: RemoteRequest, who: str) -> Iterator[Finding]:
    if endpoint.target.startswith("unix:"):
        path = endpoint.target.removeprefix("unix:")
        with socket.socket(socket.AF_UNIX) as door:
            yield _connected(door, path, who)
        return
    host, _, port = endpoint.target.rpartition(":")
    host = host.strip("[]")
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except OSError as error:
        why = f"{host}: {error.strerror}"
        yield Finding(f"{who} name", State.PROBLEM, why, "check the URL's host, and the DNS")
        return
    addresses = ", ".join(dict.fromkeys(str(item[4][0]) for item in found))
    yield Finding(f"{who} name", State.OK, f"{host} is {addresses}")
    try:
        with socket.create_connection((host, int(port)), timeout=_PATIENCE) as door:
            yield Finding(f"{who} port", State.OK, f"{port} is open")
            if endpoint.secure:
                yield _shaken(door, host, remote, who)
    except OSError as error:
        yield _closed(port, error, who)


def _connected(door: socket.socket, address: str, who: str) -> Finding:
    door.settimeout(_PATIENCE)
    try:
        door.connect(address)
    except OSError as error:
        return _closed(address, error, who)
    return Finding(f"{who} port", State.OK, f"{address} is open")


def _closed(port: str, error: OSError, who: str) -> Finding:
    why = error.strerror or str(error)
    advice = "start the server there, or let the firewall pass it"
    return Finding(f"{who} port", State.PROBLEM, f"{port}: {why}", advice)


def _shaken(door: socket.socket, host: str, remote: RemoteRequest, who: str) -> Finding:
    """Whether the server's certificate counts."""
    try:
        context = ssl.create_default_context(
            cafile=str(remote.tls_certificate) if remote.tls_certificate else None
        )
        if remote.tls_client_certificate:
            context.load_cert_chain(remote.tls_client_certificate, remote.tls_client_key)
        context.set_alpn_protocols(["h2"])
        with context.wrap_socket(door, server_hostname=host) as safe:
            until = (safe.getpeercert() or {}).get("notAfter", "an unknown time")
            return Finding(f"{who} TLS", State.OK, f"{safe.version()}, valid until {until}")
    except ssl.SSLCertVerificationError as error:
        advice = _VERIFIED.get(error.verify_code, _UNTRUSTED)
        return Finding(f"{who} TLS", State.PROBLEM, error.verify_message, advice)
    except (OSError, ValueError) as error:
        advice = "check that this port has TLS; without TLS, use grpc://"
        why = getattr(error, "reason", None) or str(error)
        if why == "WRONG_VERSION_NUMBER":  # what OpenSSL makes of bytes that are not TLS
            why = "the server answers without TLS"
            advice = "use grpc:// in place of grpcs://"
        return Finding(f"{who} TLS", State.PROBLEM, str(why), advice)


def _asked(
    endpoint: Endpoint, who: str, connection: ExitStack
) -> Generator[Finding, None, RemoteCache | None]:
    from kabuild.remote.client import RemoteCache

    try:
        cache = connection.enter_context(RemoteCache.connect(endpoint))
    except RemoteError as error:
        advice = "try TLS (grpcs://), or check that it is a gRPC server"
        if endpoint.secure:
            advice = _UNWELCOME_WITH if endpoint.certificate else _UNWELCOME
        yield problem(f"{who} server", error, advice)
        return None
    said = cache.capabilities
    version = f"version {said.version}" if said.version else "no version stated"
    functions = ", ".join(said.functions) or "not stated"
    instance = f"instance '{endpoint.instance}'" if endpoint.instance else "the default instance"
    yield Finding(f"{who} server", State.OK, f"Remote Execution API, {version}; {instance}")
    yield Finding(f"{who} digests", State.OK, functions)
    try:
        cache.results.get_many([EMPTY])
        cache.blobs.missing([EMPTY])
    except RemoteError as error:
        yield problem(f"{who} reading", error, REFUSED)
        return None
    yield Finding(f"{who} reading", State.OK, "results and blobs can be read")
    return cache


def _written(cache: RemoteCache) -> Finding:
    """Whether results can be added: a machine that only reads does without."""
    try:
        cache.results.put(_KEY, _ENTRY)
    except RemoteError as error:
        advice = "only needed for --remote_upload_local_results"
        return Finding("cache writing", State.OPTIONAL, error.message, advice)
    return Finding("cache writing", State.OK, "results can be sent")


def problem(name: str, error: KabuildError, advice: str = "") -> Finding:
    """A finding that is an error, with its own hint or this ``advice``."""
    return Finding(name, State.PROBLEM, error.message, error.hint or advice)
