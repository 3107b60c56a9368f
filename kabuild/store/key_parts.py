"""The parts of a key, read back from the store, so that two keys can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kabuild.base.canonical import parse_fields
from kabuild.base.errors import StoreError
from kabuild.model.digest import Digest
from kabuild.store.cas import Cas
from kabuild.store.merkle import parse_duration


@dataclass(frozen=True)
class KeyParts:
    """The parts of one action's key.

    ``settings`` has the argv, each environment variable, each platform property, the
    timeout and the declared outputs by a readable name; ``files`` the digest of each input.
    """

    settings: Mapping[str, str] = field(hash=False)
    files: Mapping[str, Digest] = field(hash=False)


@dataclass(frozen=True)
class Change:
    """One difference between two keys: its name and both values; ``none`` if absent."""

    what: str
    old: str
    new: str
    is_input: bool = False

    def __str__(self) -> str:
        if self.is_input:
            return f"input {self.what}: {self.old[:12]} -> {self.new[:12]}"
        return f"{self.what}: {self.old} -> {self.new}"


def read_key(cas: Cas, key: Digest) -> KeyParts | None:
    """The parts of ``key``; None if the store no longer has all its messages."""
    try:
        action = dict(parse_fields(cas.get(key)))
        command = cas.get(Digest.from_wire(_bytes(action[1])))
        settings = dict(_settings(parse_fields(command)))
        settings["timeout"] = f"{parse_duration(_bytes(action.get(6, b''))):.12g} s"
        files = dict(_files(cas, Digest.from_wire(_bytes(action[2])), ""))
    except (StoreError, ValueError, KeyError):
        return None
    return KeyParts(settings, files)


def changes(old: KeyParts, new: KeyParts) -> list[Change]:
    """The differences: settings first, then inputs by path."""
    settings = [
        Change(name, old.settings.get(name, "none"), new.settings.get(name, "none"))
        for name in sorted({*old.settings, *new.settings})
        if old.settings.get(name) != new.settings.get(name)
    ]
    inputs = [
        Change(path, _hash(old.files.get(path)), _hash(new.files.get(path)), is_input=True)
        for path in sorted({*old.files, *new.files})
        if old.files.get(path) != new.files.get(path)
    ]
    return settings + inputs


def _hash(digest: Digest | None) -> str:
    return digest.hash if digest else "absent"


def _settings(fields: list[tuple[int, int | bytes]]) -> Iterator[tuple[str, str]]:
    texts: dict[int, list[str]] = {1: [], 7: []}
    for number, value in fields:
        if number in texts:
            texts[number].append(_bytes(value).decode())
        elif number == 2:
            yield _pair("env", _bytes(value))
        elif number == 5:
            for _, item in parse_fields(_bytes(value)):
                yield _pair("property", _bytes(item))
    yield "command", " ".join(texts[1])
    yield "outputs", " ".join(texts[7])


def _pair(what: str, message: bytes) -> tuple[str, str]:
    fields = dict(parse_fields(message))
    name, value = (_bytes(fields.get(number, b"")).decode() for number in (1, 2))
    return f"{what} {name}", value


def _files(cas: Cas, directory: Digest, prefix: str) -> Iterator[tuple[str, Digest]]:
    for number, value in parse_fields(cas.get(directory)):
        if number not in {1, 2}:
            continue
        node = dict(parse_fields(_bytes(value)))
        path = f"{prefix}{_bytes(node[1]).decode()}"
        digest = Digest.from_wire(_bytes(node[2]))
        if number == 1:
            yield path, digest
        else:
            yield from _files(cas, digest, f"{path}/")


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        msg = "a number where a message was expected"
        raise ValueError(msg)
    return value
