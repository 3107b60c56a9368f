"""HIP for the CPU: a kernel's library, and the runtime that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bounds import FOR_HOSTS, Bounds
from compiler import Compiler, Link
from cpu_dialect import CPU
from diagnostics import translate
from elf import read_symbols
from faults import SourceFault
from instrumentation import BUFFERS, CALLS
from kernel_library import (
    link_imports,
    link_kernel,
    mangled,
    publish,
    require_entries,
    require_tool,
    undefined,
    workplace,
    write,
)
from native import compile_all, merge
from separation import PRELUDE, require_separation
from sources import MAIN, load
from symbols import words

_CPU = Path(__file__).resolve().parents[1]
INCLUDES = (_CPU / "include", _CPU.parent / "include")
INCLUDE_OPTIONS = tuple(f"-I{path}" for path in INCLUDES)
HEADERS = tuple(f"{path}/" for path in INCLUDES)
KERNEL_OBJECT = "kernel.o"
OUTPUT = "output"
RUNTIME = words(
    """
    hipcpu_barrier hipcpu_barrier_and hipcpu_barrier_count hipcpu_barrier_or hipcpu_clock
    hipcpu_context hipcpu_copy_from_symbol hipcpu_copy_to_symbol hipcpu_device_attribute
    hipcpu_device_properties hipcpu_exchange hipcpu_fail hipcpu_launch hipcpu_malloc
    hipcpu_malloc_pinned hipcpu_next_thread hipcpu_occupancy
    hipDeviceReset hipDeviceSynchronize hipDriverGetVersion hipEventCreateWithFlags
    hipEventDestroy hipEventElapsedTime hipEventRecord hipEventSynchronize hipFree hipGetDevice
    hipGetDeviceCount hipGetErrorName hipGetErrorString hipGetLastError
    hipHostGetDevicePointer hipInit hipMemGetInfo hipMemcpy hipMemcpy2D hipMemset hipMemsetD32
    hipPeekAtLastError hipRuntimeGetVersion hipSetDevice hipStreamCreateWithPriority
    hipStreamDestroy hipStreamSynchronize hipStreamWaitEvent
    """
)
"""What ``libhipcpu.so`` exports for candidates; a test compares it with the library."""

SWITCH = frozenset({"hipcpu_begin_call", "hipcpu_enable_launches", "hipcpu_explain_fault"})
"""What it exports for the runner alone."""


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
        options += PRELUDE if compiler.reads_hip else ()
        with bounds.around(source):
            done = compiler.compile(MAIN, KERNEL_OBJECT, options, directory)
        if done.returncode:
            prefixes = (*HEADERS, *compiler.prefixes)
            raise SourceFault(translate(done.messages, sources, prefixes))
        if compiler.reads_hip:
            with bounds.around(source):
                require_separation(sources, compiler, directory, options, HEADERS)
        symbols = read_symbols((directory / KERNEL_OBJECT).read_bytes())
        exports = [s.name for s in symbols if s.defined and s.function and not mangled(s.name)]
        require_entries(source, entries, exports, symbols)
        imports = link_imports(symbols, sources, compiler, RUNTIME)
        link = Link([KERNEL_OBJECT], OUTPUT, imports, exports)
        link_kernel(source, link, compiler, directory, bounds)
        publish(directory / OUTPUT, output)


def build_runtime(output: Path, compiler: Compiler, *, sanitize: bool = False) -> None:
    """Compile the fiber runtime, ``libhipcpu.so``; with the sanitizer if wanted."""
    files = sorted(path for path in (_CPU / "runtime").iterdir() if path.suffix in {".cpp", ".S"})
    options, offered = [*INCLUDE_OPTIONS], RUNTIME | SWITCH
    if sanitize:
        files += sorted((_CPU / "sanitizer").glob("*.cpp"))
        options, offered = [*options, "-DHIPCPU_OBSERVED"], offered | CALLS | {BUFFERS}
    with workplace() as directory:
        objects = compile_all(files, compiler, options, directory)
        symbols = merge(objects, directory)
        exports = [s.name for s in symbols if s.defined and s.name in offered]
        link = Link(objects, OUTPUT, undefined(symbols), exports, soname="libhipcpu.so")
        require_tool(compiler.link_library(link, directory), "link the runtime")
        publish(directory / OUTPUT, output)
