"""The capabilities that a server reports."""

from __future__ import annotations

from dataclasses import dataclass

from kabuild.base.canonical import text_field
from kabuild.base.errors import Reason, RemoteError
from kabuild.remote.messages import GET_CAPABILITIES, Fields
from kabuild.remote.rpc import Rpc

_FUNCTIONS = {1: "SHA256", 2: "SHA1", 3: "MD5", 4: "VSO", 5: "SHA384", 6: "SHA512", 7: "MURMUR3"}
_FUNCTIONS |= {8: "SHA256TREE", 9: "BLAKE3"}
_SHA256 = 1
_API = 2
"""The version of the API that this client speaks."""

_ROOM = 64 << 10
"""Bytes of a batch kept free for what surrounds the blobs; a quarter of small ones."""

_LARGEST = (4 << 20) - _ROOM
"""Bytes of a batch: gRPC takes messages of 4 MiB unless a server says otherwise."""


@dataclass(frozen=True)
class Capabilities:
    """The capabilities that kabuild needs.

    Attributes:
        version: of the API, as ``2.0 to 2.3``; empty where the server does not say.
        functions: the digest functions that it offers; empty where it does not say.
        batch: bytes that one batch of blobs may have.
        writable: whether results may be added.
        executes: whether it has actions executed.
    """

    version: str
    functions: tuple[str, ...]
    batch: int
    writable: bool
    executes: bool


def ask(rpc: Rpc, seconds: float) -> Capabilities:
    """What the server of ``rpc`` can do; it has ``seconds`` to say it.

    Raises RemoteError, also for a server that cannot serve kabuild.
    """
    request = text_field(1, rpc.endpoint.instance)
    try:
        answer = rpc.unary(GET_CAPABILITIES, request, timeout=min(seconds, rpc.endpoint.timeout))
    except RemoteError as error:
        raise _explained(error, rpc.endpoint.instance) from None
    try:
        found = _read(answer)
    except ValueError as error:
        what = f"it does not answer like a Remote Execution server: {error}"
        hint = "check the URL"
        raise RemoteError(Reason.REMOTE_REFUSED, what, hint=hint) from None
    if found.functions and _FUNCTIONS[_SHA256] not in found.functions:
        what = f"the server's digest function is {', '.join(found.functions)}, expected SHA256"
        hint = "start the server with SHA256, or use another server"
        raise RemoteError(Reason.REMOTE_REFUSED, what, hint=hint)
    return found


def _read(answer: bytes) -> Capabilities:
    message = Fields(answer)
    cache = Fields(message.data(1))
    low, high = Fields(message.data(4)), Fields(message.data(5))
    if high.number(1) and not low.number(1) <= _API <= high.number(1):
        raise ValueError(f"it speaks versions {_version(low)} to {_version(high)}, expected 2.0")
    stated = cache.number(4)
    return Capabilities(
        version=f"{_version(low)} to {_version(high)}" if high.number(1) else "",
        functions=tuple(_FUNCTIONS.get(number, f"number {number}") for number in cache.numbers(1)),
        batch=min(_LARGEST, stated - min(_ROOM, stated // 4)) if stated else _LARGEST,
        writable=bool(Fields(cache.data(2)).number(1)),
        executes=bool(Fields(message.data(2)).number(2)),
    )


def _version(semver: Fields) -> str:
    return f"{semver.number(1)}.{semver.number(2)}"


def _explained(error: RemoteError, instance: str) -> RemoteError:
    """The same error with the most likely remedy."""
    hint = {
        "UNIMPLEMENTED": "the server does not speak the Remote Execution API",
        "UNAUTHENTICATED": "the server wants a token or a certificate: see --remote_header, "
        "--tls_client_certificate",
        "PERMISSION_DENIED": "the token or certificate does not allow this",
        "INVALID_ARGUMENT": f"is the instance '{instance}' right?",
    }.get(error.status, "")
    if error.reason is Reason.REMOTE_MISSING:
        return RemoteError(
            Reason.REMOTE_REFUSED,
            f"the server has no instance '{instance}': {error.message}",
            status=error.status,
        )
    return RemoteError(error.reason, error.message, status=error.status, hint=hint)
