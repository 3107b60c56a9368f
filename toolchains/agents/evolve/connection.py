"""HTTP connections out of a sandbox: direct to its own loopback, else through its proxy."""

from __future__ import annotations

import ssl
from http.client import HTTPConnection, HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

_LOOPBACK = {"127.0.0.1", "localhost", "::1"}
ROOTS = ("/usr/share/ca-certificates", "/etc/ssl/certs", "/etc/pki/ca-trust/extracted/pem")
"""Where machines keep certificates; sandboxes see only those below /usr."""


def open_connection(
    url: str, proxy: str, timeout: float, context: ssl.SSLContext | None
) -> HTTPConnection:
    """A connection to the host of ``url``, through ``proxy`` (a URL) unless it is the loopback.

    Raises ValueError for an invalid URL. It is not connected yet.
    """
    target = urlsplit(url)
    secure = target.scheme == "https"
    if target.scheme not in {"http", "https"} or not target.hostname:
        raise ValueError(f"'{url}' is not an http:// or https:// address")
    port = target.port or (443 if secure else 80)
    by_proxy = bool(proxy) and target.hostname not in _LOOPBACK
    host, its_port = _host(proxy) if by_proxy else (target.hostname, port)
    connection: HTTPConnection
    if secure:
        connection = HTTPSConnection(host, its_port, timeout=timeout, context=context)
    else:
        connection = HTTPConnection(host, its_port, timeout=timeout)
    if by_proxy:
        connection.set_tunnel(target.hostname, port)
    return connection


def trust(authorities: Path | None) -> ssl.SSLContext:
    """The trusted certificate authorities: those in a file, else this machine's.

    Raises OSError for a file without any.
    """
    if authorities is not None:
        return ssl.create_default_context(cafile=str(authorities))
    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"]:
        for root in map(Path, ROOTS):
            for path in (*root.rglob("*.crt"), *root.glob("*.pem")):
                _load(context, path)
    return context


def _load(context: ssl.SSLContext, path: Path) -> None:
    try:
        context.load_verify_locations(cafile=str(path))
    except (OSError, ssl.SSLError):
        return  # a dangling link or another kind of file: one authority less


def _host(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    if not parts.hostname or not parts.port:
        raise ValueError(f"'{url}' is not the address of a proxy")
    return parts.hostname, parts.port
