"""The address of a server, and how to connect to it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

TIMEOUT = 60.0
"""Seconds that one call may take."""

RETRIES = 5
"""How often a call is tried again when the server is not available."""

_SECURE_PORT = 443
_PORT = re.compile(r"[0-9]{1,5}")


@dataclass(frozen=True)
class Endpoint:
    """One instance of one server.

    Attributes:
        target: as gRPC takes it: ``host:port``, or ``unix:PATH``.
        instance: name of the server's part; many servers have one part with an empty name.
        secure: whether TLS is used.
        headers: sent with every call, such as tokens; names in lower case.
        roots: PEM of the authorities whose certificates count; None for those of the system.
        certificate, key: PEM of the client's own, for servers that ask for one.
        timeout: seconds that one call may take.
        retries: how often a call is tried again when the server is not available.
    """

    target: str
    instance: str = ""
    secure: bool = False
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    roots: bytes | None = field(default=None, repr=False)
    certificate: bytes | None = field(default=None, repr=False)
    key: bytes | None = field(default=None, repr=False)
    timeout: float = TIMEOUT
    retries: int = RETRIES

    @classmethod
    def of(cls, url: str) -> Endpoint:
        """The endpoint of ``grpc[s]://HOST:PORT[/INSTANCE]`` or ``unix:PATH``.

        Raises ``ValueError`` with what is wrong.
        """
        if url.startswith("unix:"):
            path = url.removeprefix("unix:")
            path = path.removeprefix("//") if path.startswith("//") else path
            if not path.startswith("/"):
                raise ValueError(f"a socket's path must be absolute, got '{url}'")
            return cls(f"unix:{path}")
        try:
            parts = urlsplit(url)
            host = parts.hostname
        except ValueError as error:
            raise ValueError(f"'{url}' is not a URL: {error}") from None
        if parts.scheme not in {"grpc", "grpcs"}:
            raise ValueError(f"expected grpc://HOST:PORT, grpcs://HOST or unix:PATH, got '{url}'")
        if parts.username is not None or parts.query or parts.fragment:
            raise ValueError("the URL must not have a user, '?' or '#'; send tokens as headers")
        secure = parts.scheme == "grpcs"
        if not host:
            raise ValueError(f"the URL '{url}' has no host")
        return cls(
            target=f"[{host}]:{_port(url, secure=secure)}"
            if ":" in host
            else f"{host}:{_port(url, secure=secure)}",
            instance=unquote(parts.path.strip("/")),
            secure=secure,
        )

    @property
    def shown(self) -> str:
        """The URL, for people."""
        instance = f" instance '{self.instance}'" if self.target.startswith("unix:") else ""
        if self.target.startswith("unix:"):
            return self.target + (instance if self.instance else "")
        path = f"/{self.instance}" if self.instance else ""
        return f"{'grpcs' if self.secure else 'grpc'}://{self.target}{path}"


def _port(url: str, *, secure: bool) -> int:
    """The port of a URL; by default that of TLS. Raises ``ValueError``."""
    place = urlsplit(url).netloc.rpartition("]")[2]
    text = place.rpartition(":")[2] if ":" in place else ""
    if not text and secure:
        return _SECURE_PORT
    if not text:
        raise ValueError(f"the URL '{url}' has no port: write grpc://HOST:PORT")
    if not _PORT.fullmatch(text) or not 1 <= int(text) < 1 << 16:
        raise ValueError(f"'{text}' is not a port")
    return int(text)
