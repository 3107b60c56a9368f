"""Signatures of results in a cache, and the keys that are trusted.

They are OpenSSH's, as those of bundles are, with Ed25519 keys; ``ssh-keygen -Y verify`` reads them.
There are thousands, so they are made and checked in this process. A signature covers the key and
the ``statement`` of its result; it lies in the entry's ``execution_metadata``, where the API leaves
room for what servers do not know. Its namespace keeps a signature of a bundle from standing for one
of a result.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from functools import cached_property, lru_cache
from itertools import chain
from operator import itemgetter
from typing import Any

from kabuild.base.canonical import (
    bytes_field,
    int_field,
    message_field,
    parse_fields,
    text_field,
)
from kabuild.model.digest import Digest

NAMESPACE = "kabuild-result"

_KIND = b"ssh-ed25519"
_HASH = b"sha512"
_MAGIC = b"SSHSIG"
_PUBLIC_SIZE = 32
_SIGNATURE_SIZE = 64
_TYPE = "type.googleapis.com/kabuild.v1.ResultSignature"
_METADATA, _AUXILIARY = 9, 11
_STATED = frozenset({2, 3, 4, 6, 8})
"""Of an ``ActionResult``: files, directories, exit code, stdout and stderr."""

_TIMED = frozenset({1, 3, 4, 7, 8})
"""Of its metadata: the worker, and when it and the command began and ended."""

_Fields = list[tuple[int, int | bytes]]
"""What ``parse_fields`` returns."""

_WORD = re.compile(r'(?:[^\s"]|"[^"]*")+')
_OPTION = re.compile(r'(?P<name>[a-z-]+)(?:="(?P<value>[^"]*)")?')


class Distrust(Enum):
    """Why an entry does not count, in the words of a report."""

    UNSIGNED = "not signed"
    UNKNOWN = "signed with an unknown key"
    EXPIRED = "signed with a key that is not valid now"
    FORGED = "changed after signing"
    DAMAGED = "unreadable"


@dataclass(frozen=True)
class TrustedKey:
    """One signer: ``principal`` is a name for people, ``public`` 32 bytes.

    ``after`` and ``before`` bound when the key is valid, in seconds since 1970.
    """

    principal: str
    public: bytes
    after: float = float("-inf")
    before: float = float("inf")

    def is_valid(self, now: float) -> bool:
        """Whether it counts at this time of day."""
        return self.after <= now < self.before

    @cached_property
    def verifier(self) -> Any:
        """The key as the library has it."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        return Ed25519PublicKey.from_public_bytes(self.public)


@dataclass(frozen=True)
class TrustedKeys:
    """Those whose results count, by public key."""

    keys: Mapping[bytes, TrustedKey] = field(hash=False)

    @classmethod
    def parse(cls, lines: Iterable[str]) -> TrustedKeys:
        """The keys of an OpenSSH allowed-signers file.

        Raises ``ValueError(number, problem)`` for a line that is wrong.
        """
        found: dict[bytes, TrustedKey] = {}
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            try:
                key = _trusted(text)
            except ValueError as error:
                raise ValueError(number, str(error)) from None
            if key is not None:
                found[key.public] = key
        return cls(found)

    def check(self, key: Digest, entry: bytes, now: float) -> bytes | Distrust:
        """The statement of an entry under ``key`` that was signed by one of these.

        Only what is in the statement may be read. ``now`` is the time of day.
        """
        try:
            fields, metadata = _read(entry)
            said = _stated(fields, metadata)
            signatures = [_parsed(blob) for blob in _signatures(metadata)]
        except ValueError:
            return Distrust.DAMAGED
        worst = Distrust.UNKNOWN if signatures else Distrust.UNSIGNED
        for public, signature in signatures:
            known = self.keys.get(public)
            if known is None:
                continue
            if not known.is_valid(now):
                worst = Distrust.EXPIRED
            elif _is_genuine(known, signature, _signed(key, said)):
                return said
            else:
                worst = Distrust.FORGED
        return worst


@dataclass(frozen=True)
class Signer:
    """Signs results with one private key, which is in no message and in no representation."""

    _private: Any = field(repr=False)

    @classmethod
    def of(cls, pem: bytes) -> Signer:
        """The signer with an Ed25519 key of OpenSSH, which has no passphrase.

        Raises ``ValueError`` with what is wrong.
        """
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_ssh_private_key

        try:
            private = load_ssh_private_key(pem, password=None)
        except TypeError:
            raise ValueError("the key has a passphrase; use one without") from None
        except (ValueError, UnsupportedAlgorithm):
            raise ValueError("it is not a private key of OpenSSH") from None
        if not isinstance(private, Ed25519PrivateKey):
            raise ValueError("it is not an Ed25519 key: ssh-keygen -t ed25519 makes one")
        return cls(private)

    @property
    def public(self) -> bytes:
        """The 32 bytes of its public key."""
        raw: bytes = self._private.public_key().public_bytes_raw()
        return raw

    def sign(self, key: Digest, entry: bytes) -> bytes:
        """``entry``, filed under ``key``, with a signature."""
        said = statement(entry)
        message = _signed(key, said)
        signature = _string(_KIND) + _string(self._private.sign(_preimage(message)))
        blob = (
            _MAGIC
            + (1).to_bytes(4, "big")
            + _string(_string(_KIND) + _string(self.public))
            + _string(NAMESPACE.encode())
            + _string(b"")
            + _string(_HASH)
            + _string(signature)
        )
        packed = text_field(1, _TYPE) + bytes_field(2, bytes_field(1, blob))
        head, metadata = _halves(said)
        return head + message_field(_METADATA, metadata + message_field(_AUXILIARY, packed))


def statement(entry: bytes) -> bytes:
    """What an entry states, in one form: whatever a server adds or reorders is left out.

    Raises ``ValueError`` if it is not an ``ActionResult``, or has no metadata.
    """
    return _stated(*_read(entry))


def armoured(entry: bytes) -> str:
    """The first signature of an entry as ssh-keygen has it in files. Raises ``ValueError``."""
    blob = next(_signatures(_read(entry)[1]), None)
    if blob is None:
        raise ValueError("not signed")
    text = base64.encodebytes(blob).decode()
    return f"-----BEGIN SSH SIGNATURE-----\n{text}-----END SSH SIGNATURE-----\n"


def signed_message(key: Digest, entry: bytes) -> bytes:
    """The bytes that the signature of ``entry`` under ``key`` covers. Raises ``ValueError``."""
    return _signed(key, statement(entry))


def _read(entry: bytes) -> tuple[_Fields, list[_Fields]]:
    """The fields of an entry, and those of each of its metadata. Raises ``ValueError``."""
    fields = parse_fields(entry)
    metadata = [value for number, value in fields if number == _METADATA]
    if not metadata or isinstance(metadata[-1], int):
        raise ValueError("no execution metadata")
    return fields, [parse_fields(value) for value in metadata if isinstance(value, bytes)]


def _stated(fields: _Fields, metadata: list[_Fields]) -> bytes:
    """See ``statement``; of several metadata the last counts, as protobuf has it."""
    times = _in_order(metadata[-1], _TIMED)
    return _in_order(fields, _STATED) + message_field(_METADATA, times)


def _in_order(fields: _Fields, numbers: frozenset[int]) -> bytes:
    """Those of ``fields`` with such numbers, by number; equal ones stay in their order."""
    return b"".join(
        int_field(number, value)
        if isinstance(value, int)
        else bytes_field(number, value, keep_empty=True)
        for number, value in sorted(
            (field for field in fields if field[0] in numbers), key=itemgetter(0)
        )
    )


def _halves(said: bytes) -> tuple[bytes, bytes]:
    """A statement without its metadata, and these."""
    metadata = next(v for n, v in parse_fields(said) if n == _METADATA)
    assert isinstance(metadata, bytes)
    return said[: len(said) - len(message_field(_METADATA, metadata))], metadata


def _signatures(metadata: list[_Fields]) -> Iterator[bytes]:
    """The signatures in an entry's metadata, of whatever worth. Raises ``ValueError``."""
    for number, packed in chain.from_iterable(metadata):
        if number != _AUXILIARY or isinstance(packed, int):
            continue
        parts = dict(parse_fields(packed))
        value = parts.get(2, b"")
        if parts.get(1) == _TYPE.encode() and isinstance(value, bytes):
            blob = dict(parse_fields(value)).get(1, b"")
            if isinstance(blob, bytes):
                yield blob


def _parsed(blob: bytes) -> tuple[bytes, bytes]:
    """The public key and the signature of OpenSSH's blob. Raises ``ValueError``."""
    return _public_of(blob[:-_SIGNATURE_SIZE]), blob[-_SIGNATURE_SIZE:]


@lru_cache(maxsize=256)
def _public_of(head: bytes) -> bytes:
    """The public key in a blob without its signature: the same for all of one signer.

    Raises ``ValueError``.
    """
    if head[: len(_MAGIC) + 4] != _MAGIC + (1).to_bytes(4, "big"):
        raise ValueError("not a signature of OpenSSH")
    blob = head[len(_MAGIC) + 4 :] + bytes(_SIGNATURE_SIZE)
    key, namespace, reserved, algorithm, signature = _strings(blob, 5)
    if (namespace, reserved, algorithm) != (NAMESPACE.encode(), b"", _HASH):
        raise ValueError("a signature of something else")
    if len(_ed25519(signature)) != _SIGNATURE_SIZE:
        raise ValueError("a signature of another size")
    return _ed25519(key)


def _ed25519(data: bytes) -> bytes:
    kind, value = _strings(data, 2)
    if kind != _KIND:
        raise ValueError("not of Ed25519")
    return value


def _strings(data: bytes, count: int) -> list[bytes]:
    """SSH's strings, each after its size; there are just so many. Raises ``ValueError``."""
    found, at = [], 0
    for _ in range(count):
        size = int.from_bytes(data[at : at + 4], "big")
        value = data[at + 4 : at + 4 + size]
        if at + 4 > len(data) or len(value) != size:
            raise ValueError("cut short")
        found.append(value)
        at += 4 + size
    if at != len(data):
        raise ValueError("more than it should have")
    return found


def _string(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


def _signed(key: Digest, said: bytes) -> bytes:
    return bytes_field(1, key.to_wire()) + bytes_field(2, said)


def _preimage(message: bytes) -> bytes:
    """What OpenSSH signs for ``message``."""
    digest = hashlib.sha512(message).digest()
    return _MAGIC + _string(NAMESPACE.encode()) + _string(b"") + _string(_HASH) + _string(digest)


def _is_genuine(key: TrustedKey, signature: bytes, message: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        key.verifier.verify(signature, _preimage(message))
    except InvalidSignature:
        return False
    return True


def _trusted(line: str) -> TrustedKey | None:
    """One line of an allowed-signers file; None where it is for other namespaces.

    Raises ``ValueError``.
    """
    words = _WORD.findall(line)
    if len(words) < 3:
        raise ValueError("expected NAME ssh-ed25519 KEY")
    principal, rest = words[0].strip('"'), words[1:]
    options: dict[str, str] = {}
    if not rest[0].startswith(("ssh-", "sk-", "ecdsa-")):
        options = _options(rest[0])
        rest = rest[1:]
    if len(rest) < 2:
        raise ValueError("expected NAME ssh-ed25519 KEY")
    namespaces = options.get("namespaces")
    if namespaces is not None and NAMESPACE not in namespaces.split(","):
        return None
    if rest[0] != _KIND.decode():
        raise ValueError(f"a key of kind '{rest[0]}' is not supported, use ssh-ed25519")
    try:
        public = _ed25519(base64.b64decode(rest[1], validate=True))
    except ValueError:
        public = b""
    if len(public) != _PUBLIC_SIZE:
        raise ValueError("the key is damaged: copy the line of its .pub file again")
    return TrustedKey(
        principal,
        public,
        _time(options["valid-after"]) if "valid-after" in options else float("-inf"),
        _time(options["valid-before"]) if "valid-before" in options else float("inf"),
    )


def _options(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while match := _OPTION.match(text, at):
        found[match["name"]] = match["value"] or ""
        at = match.end()
        if at == len(text) or text[at] != ",":
            break
        at += 1
    unknown = found.keys() - {"namespaces", "valid-after", "valid-before"}
    if at != len(text) or unknown:
        raise ValueError(f"the option '{min(unknown, default=text)}' is not supported")
    return found


def _time(text: str) -> float:
    """OpenSSH's time, YYYYMMDD[HHMM[SS]][Z], in seconds since 1970. Raises ``ValueError``."""
    digits = text.removesuffix("Z")
    shape = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}.get(len(digits))
    if shape is None or not digits.isdecimal():
        raise ValueError(f"'{text}' is not a time: write YYYYMMDDZ")
    when = datetime.strptime(digits, shape)
    return (when.replace(tzinfo=UTC) if text.endswith("Z") else when).timestamp()
