"""Where the parts of a TOML text stand."""

from __future__ import annotations

import json
import textwrap
import tomllib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kabuild.loading.positions import Path, find, scan

TRICKY = "[[kind]] # x = \"]}',{\\"
FILLERS = ["", " ", "\n", "\n\n  ", "  # [[kind]] name = ]\n", "\t# '\"\n\n"]
SCALARS = [
    "1",
    "-2.5e3",
    "true",
    "inf",
    "0xff",
    "1979-05-27 07:32:00",
    "07:32:00",
    json.dumps(TRICKY),
    "'[[kind]] # \\ \" ] } ,'",
    '"""one\n[[kind]]\nname = \\"""\n"""',
    '"""ends in quotes"""""',
    '""',
    '""""""',
    "''''ends in a quote''''",
    "'''\n[a]\n'''",
    '"""\\\n   folded \\\\"""',
]


class Writer:
    """Writes random TOML and notes where it put what."""

    def __init__(self, draw: Callable[..., Any]) -> None:
        self.draw = draw
        self.text = ""
        self.offsets: dict[Path, int] = {}
        self._serial = 0

    def pick(self, options: list[str]) -> str:
        return str(self.draw(st.sampled_from(options)))

    def name(self) -> str:
        self._serial += 1
        return self.pick(["k", "a-b_", "é", "a b", "x.y", 'q"']) + str(self._serial)

    def mark(self, path: Path) -> None:
        self.offsets.setdefault(path, len(self.text))

    def key(self, name: str) -> None:
        bare = all(char.isascii() and (char.isalnum() or char in "-_") for char in name)
        self.text += name if bare and self.draw(st.booleans()) else json.dumps(name)

    def pair(self, table: Path, depth: int) -> None:
        path = table
        for step in range(self.draw(st.integers(1, 2))):
            if step:
                self.text += self.pick([".", " . "])
            path = (*path, self.name())
            self.mark(path)
            self.key(str(path[-1]))
        self.text += self.pick(["=", " = ", "\t=  "])
        self.value(path, depth)

    def value(self, path: Path, depth: int) -> None:
        kind = self.pick(["scalar", "array", "table"]) if depth else "scalar"
        if kind == "scalar":
            self.text += self.pick(SCALARS)
        elif kind == "array":
            self.array(path, depth)
        else:
            self.inline_table(path, depth)

    def array(self, path: Path, depth: int) -> None:
        self.text += "[" + self.pick(FILLERS)
        size = self.draw(st.integers(0, 3))
        for index in range(size):
            self.mark((*path, index))
            self.value((*path, index), depth - 1)
            self.text += self.pick(FILLERS)
            if index + 1 < size or self.draw(st.booleans()):
                self.text += "," + self.pick(FILLERS)
        self.text += "]"

    def inline_table(self, path: Path, depth: int) -> None:
        self.text += "{" + self.pick(["", " "])
        for index in range(self.draw(st.integers(0, 3))):
            if index:
                self.text += self.pick([",", " , "])
            self.pair(path, depth - 1)
        self.text += self.pick(["", " "]) + "}"

    def body(self, table: Path) -> None:
        for _ in range(self.draw(st.integers(0, 3))):
            self.text += self.pick(["", "  "])
            self.pair(table, 2)
            self.text += self.pick(["\n", "  # [x]\n", "\n\n# it's\n"])

    def header(self, opening: str, names: list[str], path: Path) -> None:
        """``path`` is that of the table; its prefixes by name are marked on the way."""
        start = len(self.text)
        self.text += opening + self.pick(["", " "])
        named: Path = ()
        for index, name in enumerate(names):
            if index:
                self.text += self.pick([".", " . "])
            named = path[: path.index(name) + 1]
            if index + 1 < len(names):
                self.mark(named)
            self.key(name)
        self.offsets.setdefault(named, start)
        self.offsets.setdefault(path, start)
        self.text += self.pick(["", " "]) + "]" * len(opening) + self.pick(["\n", " # [[c]]\n"])


@st.composite
def documents(draw: Callable[..., Any]) -> Writer:
    writer = Writer(draw)
    writer.body(())
    counts: dict[str, int] = {}
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            kind = writer.pick(["kind", "the other"])
            index = counts.get(kind, 0)
            counts[kind] = index + 1
            path: Path = (kind, index)
            writer.header("[[", [kind], path)
            writer.body(path)
            if draw(st.booleans()):
                part = writer.name()
                writer.header("[", [kind, part], (*path, part))
                writer.body((*path, part))
        else:
            names = [writer.name() for _ in range(draw(st.integers(1, 3)))]
            writer.header("[", names, tuple(names))
            writer.body(tuple(names))
    return writer


@given(documents())
def test_every_part_of_any_document_is_found(writer: Writer) -> None:
    values = tomllib.loads(writer.text)
    assert scan(writer.text) == writer.offsets
    for path in writer.offsets:
        part: Any = values
        for step in path:
            part = part[step]  # a path that is in no document would raise


DOCUMENT = textwrap.dedent('''\
    # [[task]] is no header here
    title = """
    [[task]]
    name = "fake"
    """

    [[task]]
    name = "one"
    sizes = [
      { n = 1 },   # first
      { n = 2,
        m = 3 },
    ]

    [task.limits]
    cpu.elements = 4

    [[ task ]]
    "name" = 'two'

    [[task.cases]]
    x = 1
    [[task.cases]]
    x = 2
    ''')


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("task",), 7),
        (("task", 0), 7),
        (("task", 0, "name"), 8),
        (("task", 0, "sizes", 1), 11),
        (("task", 0, "sizes", 1, "m"), 12),
        (("task", 0, "limits"), 15),
        (("task", 0, "limits", "cpu", "elements"), 16),
        (("task", 1), 18),
        (("task", 1, "name"), 19),
        (("task", 1, "cases", 1, "x"), 24),
        (("task", 0, "sizes", 7, "n"), 9),
        (("task", 1, "missing"), 18),
        (("missing",), 0),
        ((), 0),
    ],
)
def test_lines(path: Path, line: int) -> None:
    """A part that is missing is said to stand where the nearest part around it does."""
    assert find(DOCUMENT, path) == line
