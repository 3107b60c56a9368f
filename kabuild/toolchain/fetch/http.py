"""Requests over HTTP(S) and to files, with certificates and user names as configured."""

from __future__ import annotations

import base64
import http.client
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

TIMEOUT = 60.0
"""Seconds of silence after which a request fails."""

FAILURES = (urllib.error.URLError, OSError, http.client.HTTPException)
"""The exceptions of ``open`` and reading if the network, the server or a URL is at fault."""


@dataclass(frozen=True)
class Http:
    """How to reach servers.

    Attributes:
        certificates: file of trusted authorities; "" for the system's.
    """

    certificates: str = ""

    def open(self, url: str, *, method: str = "GET", **headers: str) -> Any:
        """The response to a request. ``headers`` have ``_`` for ``-``.

        A user name in the URL goes into a header; proxies are those of the environment.
        Raises ``FAILURES``; an answer of 400 or above is a ``urllib.error.HTTPError``.
        """
        try:
            return self._opened(url, method, headers)
        except ValueError as error:  # of a malformed URL, which is found out at various places
            raise urllib.error.URLError(str(error)) from None

    def _opened(self, url: str, method: str, headers: Mapping[str, str]) -> Any:
        plain, credentials = split_credentials(url)
        request = urllib.request.Request(plain, method=method)  # noqa: S310 - schemes are checked
        request.add_header("User-Agent", "kabuild")
        if credentials:
            token = base64.b64encode(credentials.encode()).decode()
            request.add_unredirected_header("Authorization", f"Basic {token}")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        context = None
        if plain.startswith("https:"):
            context = ssl.create_default_context(cafile=self.certificates or None)
        return urllib.request.urlopen(request, timeout=TIMEOUT, context=context)  # noqa: S310


def split_credentials(url: str) -> tuple[str, str]:
    """A URL without credentials, and ``user:password``, or "" if it has none."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    return (urlunsplit(parts._replace(netloc=host)), unquote(user)) if at else (url, "")


def shown(url: str) -> str:
    """A URL for messages, without user name and password."""
    try:
        return split_credentials(url)[0]
    except ValueError:  # it is malformed
        return url.rpartition("@")[2]


def why(error: BaseException) -> str:
    """The error in a few words."""
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
    return str(getattr(reason, "strerror", None) or reason)
