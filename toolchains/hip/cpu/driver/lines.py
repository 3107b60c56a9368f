"""From instructions to lines of source: the line table of a linked library (DWARF 5)."""

from __future__ import annotations

import posixpath
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from elf import read_section

_VERSION = 5
_PATH, _DIRECTORY = 1, 2
# The sizes of forms that matter only by their size.
_FIXED_FORMS = {0x0B: 1, 0x05: 2, 0x06: 4, 0x07: 8, 0x1E: 16}
_UDATA, _STRING, _LINE_STRP = 0x0F, 0x08, 0x1F
_EXTENDED, _COPY, _ADVANCE_ADDRESS, _ADVANCE_LINE, _SET_FILE, _SET_COLUMN = range(6)
_ADD_CONSTANT, _ADVANCE_FIXED = 8, 9
_END_SEQUENCE, _SET_ADDRESS = 1, 2


@dataclass(frozen=True)
class Row:
    """The code from ``address`` on, up to the next row, comes from here; line 0 from nowhere."""

    address: int
    file: str
    line: int
    column: int


def line_rows(image: bytes) -> list[Row]:
    """The rows of all units of an ELF64 library, by address. Raises ValueError if none are."""
    table = read_section(image, ".debug_line")
    strings = read_section(image, ".debug_line_str")
    rows: list[Row] = []
    offset = 0
    while offset < len(table):
        (length,) = struct.unpack_from("<I", table, offset)
        unit = _Unit(table[offset + 4 : offset + 4 + length], strings)
        rows += unit.rows()
        offset += 4 + length
    return sorted(rows, key=lambda row: row.address)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, size: int) -> int:
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.number(1)
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self) -> int:
        start = self.at
        value = self.unsigned()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if value >> (bits - 1) else value

    def text(self) -> str:
        end = self.data.index(b"\0", self.at)
        text = self.data[self.at : end].decode("utf-8", "replace")
        self.at = end + 1
        return text


@dataclass
class _Registers:
    """Where the program of a unit stands."""

    address: int = 0
    file: int = 1
    line: int = 1
    column: int = 0


class _Unit:
    """The header of one unit, and the program that makes its rows."""

    def __init__(self, data: bytes, strings: bytes) -> None:
        reader = self._reader = _Reader(data)
        self._strings = strings
        if reader.number(2) != _VERSION:
            raise ValueError("the line table is not of DWARF 5")
        self._address_size = reader.number(1)
        reader.number(1)  # segment selectors
        program = reader.number(4) + reader.at
        self._least_instruction = reader.number(1)
        reader.number(2)  # operations of an instruction; whether rows begin statements
        self._line_base = reader.number(1) - 256
        self._line_range = reader.number(1)
        self._lengths = [reader.number(1) for _ in range(reader.number(1) - 1)]
        directories = [name for name, _ in self._entries()]
        self._files = [_joined(directories, name, index) for name, index in self._entries()]
        reader.at = program

    def _entries(self) -> list[tuple[str, int]]:
        reader = self._reader
        formats = [(reader.unsigned(), reader.unsigned()) for _ in range(reader.number(1))]
        return [self._entry(formats) for _ in range(reader.unsigned())]

    def _entry(self, formats: list[tuple[int, int]]) -> tuple[str, int]:
        name, directory = "", 0
        for content, form in formats:
            value = self._value(form)
            if content == _PATH:
                name = str(value)
            elif content == _DIRECTORY:
                directory = int(value)
        return name, directory

    def _value(self, form: int) -> str | int:
        reader = self._reader
        if form == _LINE_STRP:
            start = reader.number(4)
            return self._strings[start : self._strings.index(b"\0", start)].decode()
        if form == _STRING:
            return reader.text()
        if form == _UDATA:
            return reader.unsigned()
        if form in _FIXED_FORMS:
            return reader.number(_FIXED_FORMS[form])
        raise ValueError(f"the line table has values of the form {form:#x}")

    def rows(self) -> Iterator[Row]:
        """Run the program."""
        reader = self._reader
        registers = _Registers()
        first_special = len(self._lengths) + 1
        while reader.at < len(reader.data):
            code = reader.number(1)
            if code >= first_special:
                advance, step = divmod(code - first_special, self._line_range)
                registers.address += advance * self._least_instruction
                registers.line += self._line_base + step
                yield self._row(registers)
            elif code == _COPY:
                yield self._row(registers)
            elif code != _EXTENDED:
                self._standard(code, registers)
            elif self._extended(registers):
                yield Row(registers.address, "", 0, 0)
                registers = _Registers()

    def _standard(self, code: int, registers: _Registers) -> None:
        reader = self._reader
        if code == _ADVANCE_ADDRESS:
            registers.address += reader.unsigned() * self._least_instruction
        elif code == _ADVANCE_LINE:
            registers.line += reader.signed()
        elif code == _SET_FILE:
            registers.file = reader.unsigned()
        elif code == _SET_COLUMN:
            registers.column = reader.unsigned()
        elif code == _ADD_CONSTANT:
            advance = (255 - len(self._lengths) - 1) // self._line_range
            registers.address += advance * self._least_instruction
        elif code == _ADVANCE_FIXED:
            registers.address += reader.number(2)
        else:
            for _ in range(self._lengths[code - 1]):
                reader.unsigned()

    def _extended(self, registers: _Registers) -> bool:
        """Whether the sequence of rows ends here."""
        reader = self._reader
        end = reader.unsigned() + reader.at
        code = reader.number(1)
        if code == _SET_ADDRESS:
            registers.address = reader.number(self._address_size)
        reader.at = end
        return code == _END_SEQUENCE

    def _row(self, registers: _Registers) -> Row:
        file = self._files[registers.file]
        return Row(registers.address, file, registers.line, registers.column)


def _joined(directories: list[str], name: str, index: int) -> str:
    return posixpath.normpath(posixpath.join(directories[index] if directories else "", name))
