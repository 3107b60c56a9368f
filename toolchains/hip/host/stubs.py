"""Shared objects without code, which only say which symbols exist."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

from elf import HEADER, SECTION, SYMBOL, Machine, SectionType

_DYNAMIC = struct.Struct("<qQ")
_VERDEF = struct.Struct("<HHHHIII")
_VERDAUX = struct.Struct("<II")
_IDENT = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
_SHARED = 3
_TEXT_SECTION = 1


class _Strings:
    def __init__(self) -> None:
        self.image = bytearray(b"\0")

    def add(self, text: str) -> int:
        offset = len(self.image)
        self.image += text.encode() + b"\0"
        return offset


def stub_library(machine: Machine, soname: str, versions: Mapping[str, str]) -> bytes:
    """A shared library without code, to link against where the real one is on another machine.

    ``versions`` gives each symbol's version; an empty version leaves it to the loader.
    """
    strings = _Strings()
    order = sorted({version for version in versions.values() if version})
    index = {version: number for number, version in enumerate(order, start=2)}
    names = sorted(versions)
    symbols = SYMBOL.pack(0, 0, 0, 0, 0, 0) + b"".join(
        SYMBOL.pack(strings.add(name), 1 << 4 | 2, 0, _TEXT_SECTION, 0, 0) for name in names
    )
    version_of = struct.pack(
        f"<{len(names) + 1}H", 0, *(index.get(versions[name], 1) for name in names)
    )
    definitions = _version_definitions(strings, [soname, *order])
    dynamic = _DYNAMIC.pack(14, strings.add(soname)) + _DYNAMIC.pack(0, 0)
    sections = [
        (".text", SectionType.PROGBITS, 6, b"\0" * 16, 0, 0, 16, 0),
        (".dynsym", SectionType.DYNSYM, 2, symbols, 3, 1, 8, SYMBOL.size),
        (".dynstr", SectionType.STRTAB, 2, bytes(strings.image), 0, 0, 1, 0),
        (".gnu.version", SectionType.VERSYM, 2, version_of, 2, 0, 2, 2),
        (".gnu.version_d", SectionType.VERDEF, 2, definitions, 3, len(order) + 1, 8, 0),
        (".dynamic", SectionType.DYNAMIC, 3, dynamic, 3, 0, 8, _DYNAMIC.size),
    ]
    return _assemble(machine, sections)


def _version_definitions(strings: _Strings, names: Sequence[str]) -> bytes:
    """The first name is the library's own; version numbers count from it as 1."""
    out = b""
    entry = _VERDEF.size + _VERDAUX.size
    for number, name in enumerate(names, start=1):
        last = number == len(names)
        flags = 1 if number == 1 else 0
        out += _VERDEF.pack(1, flags, number, 1, _hash(name), _VERDEF.size, 0 if last else entry)
        out += _VERDAUX.pack(strings.add(name), 0)
    return out


def _hash(name: str) -> int:
    """The hash function of the System V ABI."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high
    return value


def _assemble(
    machine: Machine, sections: Sequence[tuple[str, int, int, bytes, int, int, int, int]]
) -> bytes:
    names = _Strings()
    body = bytearray(HEADER.size)
    headers = SECTION.pack(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    for name, kind, flags, content, link, info, alignment, entry in sections:
        body += b"\0" * (-len(body) % alignment)
        place = (len(body), len(body), len(content))
        headers += SECTION.pack(names.add(name), kind, flags, *place, link, info, alignment, entry)
        body += content
    own_name = names.add(".shstrtab")
    headers += SECTION.pack(
        own_name, SectionType.STRTAB, 0, 0, len(body), len(names.image), 0, 0, 1, 0
    )
    body += names.image
    body += b"\0" * (-len(body) % 8)
    count = len(sections) + 2
    start = (_IDENT, _SHARED, machine, 1, 0, 0, len(body), 0, HEADER.size, 0, 0)
    body[: HEADER.size] = HEADER.pack(*start, SECTION.size, count, count - 1)
    return bytes(body) + headers
