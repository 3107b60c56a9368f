"""Builds a kernel's library that reports its memory accesses, with their places in the source."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bounds import FOR_HOSTS
from compiler import Compiler, Completed, Link, run_tool
from compilers import ZigCompiler
from cpu_builds import HEADERS, INCLUDE_OPTIONS, INCLUDES, KERNEL_OBJECT, OUTPUT, RUNTIME
from cpu_dialect import CPU
from diagnostics import translate
from elf import read_symbols
from faults import SourceFault, ToolchainFault
from instrumentation import (
    ACCESSES,
    CALLS,
    CHECKS,
    GAPS,
    LINKER,
    SHARED_SECTION,
    hide_libraries,
    keep_variables,
    pass_on,
)
from kernel_library import link_imports, link_kernel, publish, workplace, write
from lines import Row, line_rows
from places import write_places
from sources import MAIN, Sources, load

_SCRIPT = "shared.ld"
Edit = Callable[[str], str]
"""Changes intermediate code."""


def _as_it_is(code: str) -> str:
    return code


@dataclass(frozen=True)
class Edits:
    """Further edits of a kernel's intermediate code, before it is optimised and after."""

    unoptimised: Edit = _as_it_is
    optimised: Edit = _as_it_is


def build_sanitized(
    source: Path,
    output: Path,
    places: Path,
    compiler: Compiler,
    *,
    wave_size: int,
    edits: Edits = Edits(),
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
            done = _instrument(compiler, options, directory, edits)
        if done.returncode:
            prefixes = (*HEADERS, *compiler.prefixes)
            raise SourceFault(translate(done.messages, sources, prefixes))
        symbols = read_symbols((directory / KERNEL_OBJECT).read_bytes())
        exports = [s.name for s in symbols if s.defined and s.function and s.name[:2] != "_Z"]
        imports = link_imports(symbols, sources, compiler, RUNTIME | CALLS | LINKER)
        (directory / _SCRIPT).write_text(SHARED_SECTION)
        link = Link([KERNEL_OBJECT], OUTPUT, imports, exports, debug=True, script=_SCRIPT)
        link_kernel(source, link, compiler, directory)
        code = _code(sources, line_rows((directory / OUTPUT).read_bytes()))
        publish(directory / OUTPUT, output)
        write_places(sources, places, code)


def _instrument(
    compiler: ZigCompiler, options: Sequence[str], cwd: Path, edits: Edits
) -> Completed:
    """Compile the kernel such that the sanitizer hears of its accesses to memory.

    LLVM checks indices in the first of three steps, instruments variables in the second and
    accesses in the third.
    """
    clang = compiler.clang
    checked, padded = f"{KERNEL_OBJECT}.ll", f"{KERNEL_OBJECT}.padded.ll"
    language = compiler.language(options, cwd)
    done = run_tool([*clang, *language, *options, *CHECKS, MAIN, "-o", checked], cwd)
    if done.returncode:
        return done
    _edit(cwd / checked, edits.unoptimised, keep_variables)
    done = run_tool([*clang, *GAPS, "-x", "ir", checked, "-o", padded], cwd)
    if done.returncode:
        return done
    _edit(cwd / padded, pass_on, edits.optimised)
    return run_tool([*clang, *ACCESSES, "-x", "ir", padded, "-o", KERNEL_OBJECT], cwd)


def _edit(path: Path, *edits: Edit) -> None:
    code = path.read_text("utf-8")
    for edit in edits:
        code = edit(code)
    path.write_text(code, "utf-8")


def _code(sources: Sources, rows: list[Row]) -> list[list[int]]:
    """The place of each instruction, as in the table of places."""
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
