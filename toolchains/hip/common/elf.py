"""Reads ELF64 files: symbols and sections."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")


class Machine(IntEnum):
    """The processors of the supported platforms, by their number in ELF."""

    X86_64 = 62
    AARCH64 = 183


class SectionType(IntEnum):
    """What a section holds."""

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
    header = HEADER.unpack_from(image)
    offset, count = header[6], header[12]
    sections = [SECTION.unpack_from(image, offset + i * SECTION.size) for i in range(count)]
    tables = {section[1]: section for section in sections}
    table = tables.get(SectionType.SYMTAB) or tables.get(SectionType.DYNSYM)
    if table is None:
        return []
    strings = sections[table[6]]
    names = image[strings[4] : strings[4] + strings[5]]
    symbols = []
    for start in range(table[4] + SYMBOL.size, table[4] + table[5], SYMBOL.size):
        name, info, other, section, _value, _size = SYMBOL.unpack_from(image, start)
        local = info >> 4 == 0
        hidden = other & 3 != 0 and section != 0
        if not local and not hidden:
            text = names[name : names.index(b"\0", name)].decode()
            symbols.append(Symbol(text, section != 0, info & 15 in {2, 10}))
    return symbols


def read_section(image: bytes, name: str) -> bytes:
    """The content of a section of an ELF64 file. Raises ValueError if there is none."""
    header = HEADER.unpack_from(image)
    offset, count, names_at = header[6], header[12], header[13]
    sections = [SECTION.unpack_from(image, offset + i * SECTION.size) for i in range(count)]
    start = sections[names_at][4]
    for section in sections:
        at = start + section[0]
        if image[at : image.index(b"\0", at)] == name.encode():
            return image[section[4] : section[4] + section[5]]
    raise ValueError(f"no section {name}")
