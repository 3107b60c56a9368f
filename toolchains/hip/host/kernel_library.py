"""The steps of building a kernel's library on every platform: files, symbols and link."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bounds import FOR_HOSTS, Bounds
from compiler import Compiler, Completed, Link
from elf import Symbol
from faults import Position, SourceFault, ToolchainFault, describe
from sources import MAIN, Sources
from symbols import IMPLICIT, LIBC, LIBM

_OPERATORS = {
    "_Znwm": "operator new",
    "_Znam": "operator new[]",
    "_ZdlPv": "operator delete",
    "_ZdlPvm": "operator delete",
    "_ZdaPv": "operator delete[]",
    "_ZdaPvm": "operator delete[]",
    "__dso_handle": "destructor of a static object",
    "__cxa_atexit": "destructor of a static object",
}
_LENGTH = re.compile(r"\d{1,9}")
_MOST_TOLD = 50
"""Of the undefined symbols: a source can have any number."""
_STRINGS = re.compile(r"_ZNK?St3__1(12basic_stringI|9to_stringE|4sto)")


@contextmanager
def workplace() -> Iterator[Path]:
    """A private directory for one build."""
    with tempfile.TemporaryDirectory(prefix="hip-") as name:
        yield Path(name)


def write(sources: Sources, directory: Path) -> None:
    """Put the files where the compiler finds them by their names for it."""
    for name, laid in sources.files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(laid.text, "utf-8")
        os.utime(path, (0, 0))  # __TIMESTAMP__ is the file's, to some compilers


def publish(built: Path, output: Path) -> None:
    """Copy the result to its destination."""
    output.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(built, output)


def require_tool(done: Completed, what: str) -> None:
    """Raise ``ToolchainFault`` where a tool failed that no source can make fail."""
    if done.returncode:
        raise ToolchainFault(f"cannot {what}:\n{done.messages}")


def require_entries(
    source: Path, entries: Sequence[str], exports: Sequence[str], symbols: Sequence[Symbol]
) -> None:
    """Raise ``SourceFault`` unless the object has each of the ``entries``."""
    for entry in entries:
        if entry in exports:
            continue
        message = f"no function extern \"C\" '{entry}'"
        mangled = re.compile(rf"_Z(N.*)?{len(entry)}{re.escape(entry)}")
        if any(s.defined and mangled.match(s.name) for s in symbols):
            message += '; there is one that is not extern "C"'
        found = ", ".join(exports) or "none"
        raise SourceFault(f'{source}:1:1: error: {message}\n  extern "C" functions: {found}')


def link_imports(
    symbols: Sequence[Symbol],
    sources: Sources,
    compiler: Compiler,
    provided: frozenset[str],
) -> list[str]:
    """The symbols that the object imports from the C library; refuses those that nothing provides.

    ``provided`` are those of the platform's runtime, which is there when the library is loaded.
    """
    wanted = undefined(symbols)
    allowed = provided | LIBM | LIBC | compiler.own_symbols
    refused = [name for name in wanted if name not in allowed]
    if refused:
        told = [_describe_undefined(name, sources) for name in refused[:_MOST_TOLD]]
        more = len(refused) - len(told)
        raise SourceFault("\n".join([*told, *([f"and {more} more of them"] if more else [])]))
    return [name for name in wanted if name not in provided]


def link_kernel(
    source: Path, link: Link, compiler: Compiler, cwd: Path, bounds: Bounds = FOR_HOSTS
) -> None:
    """Link a kernel's library.

    A source can have the compiler make sections and names that no linker takes: ``SourceFault``,
    unless the linker fails at nothing at all, too.
    """
    with bounds.around(source):
        done = compiler.link_library(link, cwd)
    if not done.returncode:
        return
    (cwd / "nothing.cpp").write_text("")
    require_tool(compiler.compile("nothing.cpp", "nothing.o", (), cwd), "compile nothing")
    nothing = Link(["nothing.o"], "nothing", ())
    require_tool(compiler.link_library(nothing, cwd), "link nothing")
    raise SourceFault(f"{source}:1:1: error: the linker rejects it\n{done.messages.strip()}")


def undefined(symbols: Sequence[Symbol]) -> list[str]:
    """The names that other libraries have to provide."""
    return [s.name for s in symbols if not s.defined and s.name not in IMPLICIT]


def mangled(name: str) -> bool:
    """Whether a symbol is C++'s, not ``extern "C"``."""
    return name.startswith("_Z")


def _describe_undefined(symbol: str, sources: Sources) -> str:
    """Point at the first mention of the name in the source, if there is one."""
    meaning = "std::string" if _STRINGS.match(symbol) else _OPERATORS.get(symbol, symbol)
    message = (
        f"undefined symbol '{meaning}': neither the source, HIP nor the usable libc defines it"
    )
    for name in reversed(_names_in(symbol)):
        if place := sources.first_mention(name):
            return describe(place, "error", message)
    return describe(Position(sources.files[MAIN].path, 1, 1), "error", message)


def _names_in(symbol: str) -> list[str]:
    """The identifiers in a mangled name: each follows its length."""
    if not mangled(symbol):
        return [symbol]
    names = []
    at = 0
    while found := _LENGTH.search(symbol, at):
        at = found.end() + int(found.group())
        names.append(symbol[found.end() : at])
    return names
