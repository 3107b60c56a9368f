"""A kernel's library that says what it does to memory, and where in the source that is."""

from __future__ import annotations

from pathlib import Path

from bounds import FOR_HOSTS
from builds import KERNEL_OBJECT, OUTPUT, link_imports, link_kernel, publish, workplace, write
from compiler import HEADERS, INCLUDE_OPTIONS, INCLUDES, Compiler, Link
from compilers import ZigCompiler
from diagnostics import translate
from dialect import CPU
from elf import read_symbols
from faults import SourceFault, ToolchainFault
from instrumentation import CALLS, LINKER, SHARED_SECTION, hide_libraries
from lines import Row, line_rows
from places import write_places
from sources import MAIN, Sources, load
from symbols import RUNTIME

_SCRIPT = "shared.ld"


def build_sanitized(
    source: Path, output: Path, places: Path, compiler: Compiler, *, wave_size: int
) -> None:
    """Compile a HIP source with a call to the sanitizer before each access to memory.

    ``places`` becomes a table of where in the source each instruction stands. Raises
    ``SourceFault`` as for a usual build, ``ToolchainFault`` where the compiler cannot do this.
    """
    if not isinstance(compiler, ZigCompiler):
        raise ToolchainFault("only the clang of the ziglang package can sanitize")
    loaded = load(source, [], CPU)
    sources = Sources({name: hide_libraries(laid) for name, laid in loaded.files.items()})
    with workplace() as directory:
        write(sources, directory)
        options = [f"-DHIPCPU_WAVE_SIZE={wave_size}", "-DHIPCPU_SANITIZE", *INCLUDE_OPTIONS, "-I."]
        options += [f"-ffile-prefix-map={path}=hip" for path in INCLUDES]
        options.append("-fdebug-compilation-dir=.")
        with FOR_HOSTS.around(source):
            done = compiler.sanitize(MAIN, KERNEL_OBJECT, options, directory)
        if done.returncode:
            prefixes = (*HEADERS, *compiler.prefixes)
            raise SourceFault(translate(done.messages, sources, prefixes))
        symbols = read_symbols((directory / KERNEL_OBJECT).read_bytes())
        exports = [s.name for s in symbols if s.defined and s.function and s.name[:2] != "_Z"]
        imports = link_imports(symbols, sources, compiler, provided=RUNTIME | CALLS | LINKER)
        (directory / _SCRIPT).write_text(SHARED_SECTION)
        link = Link([KERNEL_OBJECT], OUTPUT, imports, exports, debug=True, script=_SCRIPT)
        link_kernel(source, link, compiler, directory)
        code = _code(sources, line_rows((directory / OUTPUT).read_bytes()))
        publish(directory / OUTPUT, output)
        write_places(sources, places, code)


def _code(sources: Sources, rows: list[Row]) -> list[list[int]]:
    """Which place each instruction is of, as the table of places has it."""
    index = {name: number for number, name in enumerate(sources.files)}
    code: list[list[int]] = []
    for row in rows:
        number = index.get(row.file, -1)
        if row.line == 0 and row.file and code:
            continue  # of no line: the compiler has put several together; the last one counts
        entry = [row.address, number, row.line, row.column]
        if code and code[-1][0] == row.address:
            code.pop()
        if not code or code[-1][1:] != entry[1:]:
            code.append(entry)
    return code
