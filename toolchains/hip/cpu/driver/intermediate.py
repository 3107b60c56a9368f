"""Which functions call which, by a compiler's intermediate code that is not optimised yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_SYMBOL = re.compile(r'@("(?:[^"\\]|\\.)*"|[\w$.\-]+)')
_TYPE = re.compile(r'%"(?:[^"\\]|\\.)*"')
_CALL = re.compile(r"(?:^|= )\s*(?:(?:tail|musttail|notail) )?(?:call|invoke)\b")
_PLACE = re.compile(r"!dbg (!\d+)")
_FUNCTION = re.compile(
    r'(!\d+) = (?:distinct )?!DISubprogram\(name: "([^"]*)".*?file: (!\d+), line: (\d+)'
)
_FILE = re.compile(r'(!\d+) = !DIFile\(filename: "([^"]*)"')
_STARTERS = ("llvm.global_ctors", "llvm.global_dtors", "llvm.used", "llvm.compiler.used")
_NO_LINE = ("", 0, "")

Place = tuple[str, int, str]
"""File, line, and the name without a namespace."""


@dataclass
class Function:
    """A function with a body.

    Attributes:
        uses: the names of functions and variables in it.
        indirect: whether it calls one that it does not name.
    """

    name: str
    place: Place = _NO_LINE
    uses: set[str] = field(default_factory=set)
    indirect: bool = False


@dataclass
class Module:
    """What one source has become.

    Attributes:
        taken: the names whose address is used, but by the tables of what runs at the beginning.
        launched: the names in calls of ``launcher``, but its own.
    """

    functions: dict[str, Function] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    launched: set[str] = field(default_factory=set)

    def used_by(self, function: Function) -> Iterator[Function]:
        """The functions with a body that one uses, through other names of theirs, too."""
        uses = {*function.uses, *(self.taken if function.indirect else ())}
        for name in sorted(self.real(use) for use in uses):
            if found := self.functions.get(name):
                yield found

    def real(self, name: str) -> str:
        """The name that another one stands for."""
        while name in self.aliases:
            name = self.aliases[name]
        return name

    def reached(self, names: Iterable[str]) -> dict[str, Function]:
        """The functions with these names, and all that they use, and so on."""
        todo = [self.functions[name] for name in map(self.real, names) if name in self.functions]
        found: dict[str, Function] = {}
        while todo:
            function = todo.pop()
            if function.name not in found:
                found[function.name] = function
                todo += self.used_by(function)
        return found


def read_module(code: str, launcher: str) -> Module:
    """Read intermediate code with line tables."""
    module = Module()
    inside: Function | None = None
    places: dict[str, str] = {}
    for line in code.splitlines():
        if inside is None and line.startswith("define "):
            inside = Function(_names(line)[0])
            module.functions[inside.name] = inside
            if found := _PLACE.search(line):
                places[inside.name] = found[1]
            if ' section "' in line:  # the linker tells where the section is
                module.taken.add(inside.name)
        elif line == "}":
            inside = None
        elif (inside is not None and "@" in line) or " call " in line:
            _read_line(line, inside, module, launcher)
        elif line.startswith("@"):
            _read_variable(line, module)
    described = _described(code)
    for name, number in places.items():
        module.functions[name].place = described.get(number, _NO_LINE)
    return module


def _read_line(line: str, inside: Function | None, module: Module, launcher: str) -> None:
    if inside is None:
        return
    text = _TYPE.sub("%t", line)
    names = [name for name in _names(text) if not name.startswith("llvm.")]
    inside.uses.update(names)
    called = _CALL.search(text)
    if called is None:
        module.taken.update(names)
        return
    first = _SYMBOL.search(text, called.end())
    if first is None or text[first.end() : first.end() + 1] != "(":
        inside.indirect = True
        module.taken.update(names)
        return
    if names[:1] == [launcher]:
        # Where no name is, it may be any whose address is taken.
        module.launched.update(names[1:] or {""})
    else:
        module.taken.update(names[1:] if names and names[0] == _plain(first[1]) else names)


def _read_variable(line: str, module: Module) -> None:
    name, *others = _names(_TYPE.sub("%t", line))
    if re.search(r" (?:alias|ifunc) ", line.partition('"')[0]) and others:
        module.aliases[name] = others[0]
    elif name not in _STARTERS:
        module.taken.update(others)


def _described(code: str) -> dict[str, Place]:
    files = dict(_FILE.findall(code))
    return {
        number: (files.get(file, ""), int(line), name)
        for number, name, file, line in _FUNCTION.findall(code)
    }


def _names(text: str) -> list[str]:
    return [_plain(found) for found in _SYMBOL.findall(text)]


def _plain(name: str) -> str:
    """A name as the linker has it, whether quoted or given as it is by the source."""
    return name.strip('"').removeprefix("\\01")
