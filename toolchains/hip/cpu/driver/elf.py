"""The symbols of an object file, and shared objects that only say which symbols exist."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC = struct.Struct("<qQ")
_VERDEF = struct.Struct("<HHHHIII")
_VERDAUX = struct.Struct("<II")
_IDENT = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
_SHARED = 3
_TEXT_SECTION = 1


class Machine(IntEnum):
    """The processors of the supported platforms, by their number in ELF."""

    X86_64 = 62
    AARCH64 = 183


class _SectionType(IntEnum):
    PROGBITS = 1
    SYMTAB = 2
    STRTAB = 3
    DYNAMIC = 6
    DYNSYM = 11
    VERDEF = 0x6FFFFFFD
    VERSYM = 0x6FFFFFFF


@dataclass(frozen=True)
class Symbol:
    """A symbol that other objects see, or that this object wants to see."""

    name: str
    defined: bool
    function: bool


def read_symbols(image: bytes) -> list[Symbol]:
    """The global and weak symbols of an ELF64 object or library; hidden ones are left out."""
    header = _HEADER.unpack_from(image)
    offset, count = header[6], header[12]
    sections = [_SECTION.unpack_from(image, offset + i * _SECTION.size) for i in range(count)]
    tables = {section[1]: section for section in sections}
    table = tables.get(_SectionType.SYMTAB) or tables.get(_SectionType.DYNSYM)
    if table is None:
        return []
    strings = sections[table[6]]
    names = image[strings[4] : strings[4] + strings[5]]
    symbols = []
    for start in range(table[4] + _SYMBOL.size, table[4] + table[5], _SYMBOL.size):
        name, info, other, section, _value, _size = _SYMBOL.unpack_from(image, start)
        local = info >> 4 == 0
        hidden = other & 3 != 0 and section != 0
        if not local and not hidden:
            text = names[name : names.index(b"\0", name)].decode()
            symbols.append(Symbol(text, section != 0, info & 15 in {2, 10}))
    return symbols


def read_section(image: bytes, name: str) -> bytes:
    """The content of a section of an ELF64 file. Raises ValueError where there is none."""
    header = _HEADER.unpack_from(image)
    offset, count, names_at = header[6], header[12], header[13]
    sections = [_SECTION.unpack_from(image, offset + i * _SECTION.size) for i in range(count)]
    start = sections[names_at][4]
    for section in sections:
        at = start + section[0]
        if image[at : image.index(b"\0", at)] == name.encode():
            return image[section[4] : section[4] + section[5]]
    raise ValueError(f"no section {name}")


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
    symbols = _SYMBOL.pack(0, 0, 0, 0, 0, 0) + b"".join(
        _SYMBOL.pack(strings.add(name), 1 << 4 | 2, 0, _TEXT_SECTION, 0, 0) for name in names
    )
    version_of = struct.pack(
        f"<{len(names) + 1}H", 0, *(index.get(versions[name], 1) for name in names)
    )
    definitions = _version_definitions(strings, [soname, *order])
    dynamic = _DYNAMIC.pack(14, strings.add(soname)) + _DYNAMIC.pack(0, 0)
    sections = [
        (".text", _SectionType.PROGBITS, 6, b"\0" * 16, 0, 0, 16, 0),
        (".dynsym", _SectionType.DYNSYM, 2, symbols, 3, 1, 8, _SYMBOL.size),
        (".dynstr", _SectionType.STRTAB, 2, bytes(strings.image), 0, 0, 1, 0),
        (".gnu.version", _SectionType.VERSYM, 2, version_of, 2, 0, 2, 2),
        (".gnu.version_d", _SectionType.VERDEF, 2, definitions, 3, len(order) + 1, 8, 0),
        (".dynamic", _SectionType.DYNAMIC, 3, dynamic, 3, 0, 8, _DYNAMIC.size),
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
    body = bytearray(_HEADER.size)
    headers = _SECTION.pack(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    for name, kind, flags, content, link, info, alignment, entry in sections:
        body += b"\0" * (-len(body) % alignment)
        place = (len(body), len(body), len(content))
        headers += _SECTION.pack(names.add(name), kind, flags, *place, link, info, alignment, entry)
        body += content
    own_name = names.add(".shstrtab")
    headers += _SECTION.pack(
        own_name, _SectionType.STRTAB, 0, 0, len(body), len(names.image), 0, 0, 1, 0
    )
    body += names.image
    body += b"\0" * (-len(body) % 8)
    count = len(sections) + 2
    start = (_IDENT, _SHARED, machine, 1, 0, 0, len(body), 0, _HEADER.size, 0, 0)
    body[: _HEADER.size] = _HEADER.pack(*start, _SECTION.size, count, count - 1)
    return bytes(body) + headers
