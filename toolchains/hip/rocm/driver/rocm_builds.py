"""From a HIP source to a library with code for one of AMD's processors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from architectures import Architecture
from bounds import FOR_DEVICES, Bounds
from code_object import KernelResources, kernel_resources
from compiler import Completed, Link
from diagnostics import translate
from elf import Symbol, read_symbols
from faults import SourceFault
from kernel_library import (
    link_imports,
    link_kernel,
    publish,
    require_entries,
    require_tool,
    workplace,
    write,
)
from offload_bundle import bundle
from rocm_compilers import (
    BUNDLE,
    CODE_OBJECT,
    HOST_OBJECT,
    RocmCompiler,
    assembled_device,
    checked_device,
)
from rocm_dialect import ROCM
from sources import MAIN, Sources, load

HOST_SOURCES = Path(__file__).resolve().parents[1] / "host"
_OUTPUT = "output"
_BUNDLE = "kernel.hipfb"
_OTHER_NAME = re.compile(r"(__hip_fatbin|__hip_gpubin_handle)_\w*", re.ASCII)
"""What some clangs call the bundle, and the place of its handle. A name may hold anything: this is
written into assembly."""
_GIVEN = {"__hip_fatbin": ".set {}, __hip_fatbin", "__hip_gpubin_handle": ".comm {}, 8, 8"}
_FOUND_AT_LOAD = re.compile(r"(__)?hip[A-Z]\w*")
# Of the host's own part: what registers the bundle and takes it back.
_EXIT = frozenset({"atexit", "__dso_handle", "__cxa_atexit", "__cxa_finalize"})
_UNDEFINED = re.compile(r"undefined (?:\w+ )?symbol: (.*)")


def build_rocm_kernel(
    source: Path,
    output: Path,
    compiler: RocmCompiler,
    architecture: Architecture,
    *,
    include: Sequence[Path] = (),
    entries: Sequence[str] = (),
    bounds: Bounds = FOR_DEVICES,
) -> tuple[KernelResources, ...]:
    """Compile a HIP source into a library that exports its ``extern "C"`` functions.

    The library holds the code of its kernels, and registers it with HIP's runtime when it is
    loaded. Raises ``SourceFault`` when the source does not compile, exceeds the ``bounds`` or
    lacks one of the ``entries``. Its bytes depend on the tokens of the source, not its layout.
    """
    sources = load(source, include, ROCM)
    with workplace() as directory:
        write(sources, directory)
        with bounds.around(source):
            _compile(sources, compiler, architecture, directory)
        code = (directory / CODE_OBJECT).read_bytes()
        resources = kernel_resources(code, architecture)
        (directory / _BUNDLE).write_bytes(bundle({architecture.name: code}))
        symbols = read_symbols((directory / HOST_OBJECT).read_bytes())
        exports = [s.name for s in symbols if _is_entry(s)]
        require_entries(source, entries, exports, symbols)
        objects = [HOST_OBJECT, *_compile_host_part(symbols, compiler, directory)]
        link = Link(objects, _OUTPUT, _imports(symbols, sources, compiler), exports)
        link_kernel(source, link, compiler, directory, bounds)
        publish(directory / _OUTPUT, output)
    return resources


def _compile(
    sources: Sources, compiler: RocmCompiler, architecture: Architecture, directory: Path
) -> None:
    """Both passes at the same time: the device's code, and what launches it."""
    with ThreadPoolExecutor(2) as pool:
        device = pool.submit(checked_device, compiler, MAIN, architecture, directory)
        host = pool.submit(compiler.host, MAIN, architecture, directory)
        _require_source(device.result(), sources, compiler)
        _require_source(host.result(), sources, compiler)
    done = compiler.code_object(architecture, directory)
    if done.returncode:
        said = assembled_device(compiler, MAIN, architecture, directory)
        _require_source(said, sources, compiler)
        raise _link_fault(done, sources)


def _require_source(done: Completed, sources: Sources, compiler: RocmCompiler) -> None:
    if done.returncode:
        raise SourceFault(translate(done.messages, sources, compiler.prefixes))


def _link_fault(done: Completed, sources: Sources) -> SourceFault:
    """What is linked here comes from the source alone, of a compiler that has just worked."""
    missing = sorted(set(_UNDEFINED.findall(done.messages)))
    place = f"{sources.files[MAIN].path}:1:1"
    if not missing:
        said = done.messages.strip()
        return SourceFault(f"{place}: error: the device's code cannot be linked\n{said}")
    text = f"{place}: error: undefined symbol '{{}}' in device code"
    return SourceFault("\n".join(text.format(name) for name in missing))


def _is_entry(symbol: Symbol) -> bool:
    return symbol.defined and symbol.function and not symbol.name.startswith(("_Z", "__hip"))


def _compile_host_part(
    symbols: Sequence[Symbol], compiler: RocmCompiler, directory: Path
) -> list[str]:
    """Objects with the bundle, under the names that are asked for, and what unregisters it."""
    objects = []
    for name in compiler.host_part:
        text = (HOST_SOURCES / name).read_text()
        more = "".join(_given(symbols).values()) if name == BUNDLE else ""
        (directory / name).write_text(text + more)
        done = compiler.compile(name, f"{name}.o", ["-O2"], directory)
        require_tool(done, f"compile {name}")
        objects.append(f"{name}.o")
    return objects


def _given(symbols: Sequence[Symbol]) -> dict[str, str]:
    """Other names of the bundle, and of where its handle is kept, and how each is made."""
    made = {}
    for name in sorted({symbol.name for symbol in symbols if not symbol.defined}):
        if match := _OTHER_NAME.fullmatch(name):
            how = _GIVEN[match[1]].format(name)
            made[name] = f"    .globl {name}\n    .hidden {name}\n    {how}\n"
    return made


def _imports(symbols: Sequence[Symbol], sources: Sources, compiler: RocmCompiler) -> list[str]:
    """The symbols that the library imports from the C library; HIP's come at load."""
    runtime = {s.name for s in symbols if not s.defined and _FOUND_AT_LOAD.fullmatch(s.name)}
    provided = frozenset(runtime | _EXIT | {"__hip_fatbin", *_given(symbols)})
    wanted = link_imports(symbols, sources, compiler, provided)
    return [*wanted, "__cxa_atexit"]
