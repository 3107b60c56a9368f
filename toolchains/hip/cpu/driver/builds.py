"""The three things that are built: a kernel's library, the runtime, and a native program."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from bounds import FOR_HOSTS, Bounds
from compiler import (
    HEADERS,
    INCLUDE_OPTIONS,
    RUNTIME_SOURCES,
    SANITIZER_SOURCES,
    Compiler,
    Completed,
    Link,
)
from diagnostics import translate
from dialect import CPU
from elf import Symbol, read_symbols
from faults import Position, SourceFault, ToolchainFault, describe
from instrumentation import BUFFERS, CALLS
from sources import MAIN, Sources, load
from symbols import IMPLICIT, LIBC, LIBM, RUNTIME

KERNEL_OBJECT = "kernel.o"
OUTPUT = "output"
_OPERATORS = {
    "_Znwm": "operator new",
    "_Znam": "operator new[]",
    "_ZdlPv": "operator delete",
    "_ZdlPvm": "operator delete",
    "_ZdaPv": "operator delete[]",
    "_ZdaPvm": "operator delete[]",
    "__dso_handle": "destructor of a static object",
}


def build_kernel(
    source: Path,
    output: Path,
    compiler: Compiler,
    *,
    wave_size: int,
    include: Sequence[Path] = (),
    entries: Sequence[str] = (),
    bounds: Bounds = FOR_HOSTS,
) -> None:
    """Compile a HIP source into a library that exports its ``extern "C"`` functions.

    Raises ``SourceFault`` when the source does not compile, exceeds the ``bounds``, uses what is
    not there, or lacks one of the ``entries``. The library's bytes depend on the tokens of the
    source, not its layout.
    """
    sources = load(source, include, CPU)
    with workplace() as directory:
        write(sources, directory)
        options = [f"-DHIPCPU_WAVE_SIZE={wave_size}", "-O3", *INCLUDE_OPTIONS, "-I."]
        # A large frame must not step over the guard below a fiber's stack.
        options += ["-fstack-clash-protection", *compiler.kernel_options]
        with bounds.around(source):
            done = compiler.compile(MAIN, KERNEL_OBJECT, options, directory)
        if done.returncode:
            prefixes = (*HEADERS, *compiler.prefixes)
            raise SourceFault(translate(done.messages, sources, prefixes))
        symbols = read_symbols((directory / KERNEL_OBJECT).read_bytes())
        exports = [s.name for s in symbols if s.defined and s.function and not _mangled(s.name)]
        require_entries(source, entries, exports, symbols)
        imports = link_imports(symbols, sources, compiler)
        link = Link([KERNEL_OBJECT], OUTPUT, imports, exports)
        link_kernel(source, link, compiler, directory, bounds)
        publish(directory / OUTPUT, output)


def build_runtime(output: Path, compiler: Compiler, *, sanitize: bool = False) -> None:
    """Compile the fiber runtime, ``libhipcpu.so``; with the sanitizer in it where wanted."""
    files = sorted([*RUNTIME_SOURCES.glob("*.cpp"), *RUNTIME_SOURCES.glob("*.S")])
    options, offered = [*INCLUDE_OPTIONS], RUNTIME
    if sanitize:
        files += sorted(SANITIZER_SOURCES.glob("*.cpp"))
        options, offered = [*options, "-DHIPCPU_OBSERVED"], RUNTIME | CALLS | {BUFFERS}
    with workplace() as directory:
        objects = _compile_all(files, compiler, options, directory)
        symbols = _merge(objects, directory)
        exports = [s.name for s in symbols if s.defined and s.name in offered]
        link = Link(objects, OUTPUT, _undefined(symbols), exports, soname="libhipcpu.so")
        require_tool(compiler.link_library(link, directory), "link the runtime")
        publish(directory / OUTPUT, output)


def build_program(sources: Sequence[Path], output: Path, compiler: Compiler) -> None:
    """Compile C++ files, or all of a directory, into a program without the C++ library.

    The sources are trusted: whatever they want of the C library is looked up when they start.
    """
    files = [file for source in sources for file in _program_files(source)]
    if not files:
        raise SourceFault(f"no .cpp file in {', '.join(map(str, sources))}")
    with workplace() as directory:
        objects = _compile_all(files, compiler, [], directory)
        imports = _undefined(_merge(objects, directory))
        missing = [name for name in imports if _mangled(name)]
        if missing:
            raise SourceFault(f"error: undefined symbol '{missing[0]}'")
        link = Link(objects, OUTPUT, imports)
        require_tool(compiler.link_program(link, directory), "link the program")
        publish(directory / OUTPUT, output)
        output.chmod(0o755)


def write(sources: Sources, directory: Path) -> None:
    """Put the files where the compiler finds them by their names for it."""
    for name, laid in sources.files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(laid.text, "utf-8")


def _program_files(source: Path) -> list[Path]:
    return sorted(source.glob("*.cpp")) if source.is_dir() else [source]


def _compile_all(
    files: Sequence[Path], compiler: Compiler, options: Sequence[str], directory: Path
) -> list[str]:
    """Compile the files at the same time; the names of their objects, in the same order."""

    def build(number: int, file: Path) -> Completed:
        own = [*options, "-O2", "-fno-rtti", f"-ffile-prefix-map={file.parent.absolute()}=."]
        return compiler.compile(str(file.absolute()), f"{number}.o", own, directory)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(build, range(len(files)), files))
    failures = [run.messages for run in runs if run.returncode]
    if failures:
        raise SourceFault("\n".join(failures))
    return [f"{number}.o" for number in range(len(files))]


def _merge(objects: Sequence[str], directory: Path) -> list[Symbol]:
    """The symbols of several objects as one: what one of them defines, no other lacks."""
    symbols: dict[str, Symbol] = {}
    for name in objects:
        for symbol in read_symbols((directory / name).read_bytes()):
            if symbol.defined or symbol.name not in symbols:
                symbols[symbol.name] = symbol
    return [symbols[name] for name in sorted(symbols)]


def _undefined(symbols: Sequence[Symbol]) -> list[str]:
    return [s.name for s in symbols if not s.defined and s.name not in IMPLICIT]


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
    *,
    provided: frozenset[str] = RUNTIME,
) -> list[str]:
    """What the object wants of the C library; refuses what nothing provides."""
    wanted = _undefined(symbols)
    allowed = provided | LIBM | LIBC | compiler.own_symbols
    refused = [_describe_undefined(name, sources) for name in wanted if name not in allowed]
    if refused:
        raise SourceFault("\n".join(refused))
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
    raise SourceFault(f"{source}:1:1: error: the linker refuses it\n{done.messages.strip()}")


def _describe_undefined(symbol: str, sources: Sources) -> str:
    """Point at the first mention of the name in the source, where there is one."""
    meaning = _OPERATORS.get(symbol, symbol)
    message = f"undefined symbol '{meaning}': the source, HIP and the usable libc have none"
    for name in reversed(_names_in(symbol)):
        pattern = re.compile(rf"\b{re.escape(name)}\b")
        for laid in sources.files.values():
            for number, line in enumerate(laid.text.splitlines(), start=1):
                found = pattern.search(line)
                if found:
                    return describe(laid.original(number, found.start() + 1), "error", message)
    return describe(Position(sources.files[MAIN].path, 1, 1), "error", message)


def _mangled(name: str) -> bool:
    return name.startswith("_Z")


def _names_in(symbol: str) -> list[str]:
    """The identifiers in a mangled name: each follows its length."""
    if not _mangled(symbol):
        return [symbol]
    names = []
    at = 0
    while found := re.compile(r"\d+").search(symbol, at):
        at = found.end() + int(found.group())
        names.append(symbol[found.end() : at])
    return names


def require_tool(done: Completed, what: str) -> None:
    """Raise ``ToolchainFault`` where a tool failed that no source can make fail."""
    if done.returncode:
        raise ToolchainFault(f"cannot {what}:\n{done.messages}")


@contextmanager
def workplace() -> Iterator[Path]:
    """A private directory for one build."""
    with tempfile.TemporaryDirectory(prefix="hipcpu-") as name:
        yield Path(name)


def publish(built: Path, output: Path) -> None:
    """Copy what was built to where it is wanted."""
    output.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(built, output)
