"""From a HIP source to a library with code for one of NVIDIA's processors."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bounds import FOR_DEVICES, Bounds
from compiler import Completed, Link
from cuda_architectures import Architecture
from cuda_dialect import CUDA
from cuda_hosts import HOST_SOURCE, CudaHost
from cuda_messages import compiler_fault, device_fault, shared_fault
from cuda_resources import KernelResources, kernel_resources
from cuda_tools import CUBIN, CudaTools
from elf import Symbol, read_symbols
from kernel_library import (
    link_imports,
    link_kernel,
    publish,
    require_entries,
    require_tool,
    workplace,
    write,
)
from places import write_places
from preprocessed import refused_directive
from sources import MAIN, Sources, load

INCLUDE = Path(__file__).resolve().parents[1] / "include"
HOST_SOURCES = Path(__file__).resolve().parents[1] / "host"
_HOST_OBJECT = "host.o"
_OUTPUT = "output"
# What the code that registers kernels calls, and the host's part of ours provides.
_EXIT = frozenset({"atexit", "exit", "__dso_handle", "__cxa_atexit", "__cxa_finalize"})
_IMPORTED = ("exit", "__cxa_atexit", "__cxa_finalize")


def build_cuda_kernel(
    source: Path,
    output: Path,
    cuda: CudaTools,
    host: CudaHost,
    arch: Architecture,
    *,
    include: Sequence[Path] = (),
    entries: Sequence[str] = (),
    bounds: Bounds = FOR_DEVICES,
    places: Path | None = None,
) -> tuple[KernelResources, ...]:
    """Compile a HIP source into a library that exports its ``extern "C"`` functions.

    The library holds the code of its kernels and registers it with CUDA's runtime, which must
    be there when it is loaded. Raises ``SourceFault`` when the source does not compile, exceeds
    the ``bounds`` or lacks one of the ``entries``. Its bytes depend on the tokens of the source,
    not its layout.

    With ``places`` its code names the lines that it comes from, for tools that watch it run, and
    that file becomes the table of where the author wrote them.
    """
    sources = load(source, include, CUDA)
    with workplace() as directory:
        write(sources, directory)
        build = _Build(sources, cuda, host, arch, directory, lines=places is not None)
        with bounds.around(source):
            resources = build.compile()
        symbols = read_symbols((directory / _HOST_OBJECT).read_bytes())
        exports = [s.name for s in symbols if _is_entry(s)]
        require_entries(source, entries, exports, symbols)
        objects = [_HOST_OBJECT, build.compile_own()]
        link = Link(objects, _OUTPUT, build.imports(symbols), exports)
        link_kernel(source, link, host, directory, bounds)
        publish(directory / _OUTPUT, output)
    if places is not None:
        write_places(sources, places)
    return resources


class _Build:
    """The steps of one build, in its private directory."""

    def __init__(
        self,
        sources: Sources,
        cuda: CudaTools,
        host: CudaHost,
        arch: Architecture,
        directory: Path,
        *,
        lines: bool,
    ) -> None:
        self._lines = lines
        self._sources = sources
        self._cuda = cuda
        self._host = host
        self._arch = arch
        self._cwd = directory
        self._prefixes = (*host.prefixes, f"{INCLUDE}/", f"{cuda.include}/")

    def compile(self) -> tuple[KernelResources, ...]:
        """Make ``host.o``, which holds the device's code; returns the resources of its kernels."""
        with ThreadPoolExecutor(2) as pool:
            separated = pool.submit(self._separate)
            device = pool.submit(self._device)
            separated.result()
            resources = device.result()
        require_tool(self._cuda.embed(self._arch, self._cwd), "embed the device's code")
        done = self._host.compile(HOST_SOURCE, _HOST_OBJECT, ["-O2", *self._headers()], self._cwd)
        self._require(done)
        return resources

    def compile_own(self) -> str:
        """The object file with the library's other code."""
        name = "unload.cpp"
        (self._cwd / name).write_bytes((HOST_SOURCES / name).read_bytes())
        require_tool(self._host.compile(name, f"{name}.o", ["-O2"], self._cwd), f"compile {name}")
        return f"{name}.o"

    def imports(self, symbols: Sequence[Symbol]) -> list[str]:
        """The symbols that the library imports from the C library; CUDA's come at load."""
        offered = {s.name for s in read_symbols(self._cuda.runtime.read_bytes()) if s.defined}
        runtime = {s.name for s in symbols if not s.defined and s.name in offered}
        provided = frozenset(runtime) | _EXIT
        wanted = link_imports(symbols, self._sources, self._host, provided)
        return [*wanted, *_IMPORTED]

    def _separate(self) -> None:
        output = "host.ii"
        self._require(self._preprocess(output, ()))
        self._require(self._cuda.separate(output, self._host, self._cwd))

    def _device(self) -> tuple[KernelResources, ...]:
        output = "device.ii"
        self._require(self._preprocess(output, self._arch.defines))
        self._require(
            self._cuda.device(output, self._host, self._arch, self._cwd, lines=self._lines)
        )
        done = self._cuda.assemble(self._arch, self._cwd, lines=self._lines)
        if done.returncode:
            raise device_fault(done.messages, self._sources)
        kernels = kernel_resources(done.messages, (self._cwd / CUBIN).read_bytes(), self._arch)
        if fault := shared_fault(kernels, self._sources):
            raise fault
        return kernels

    def _preprocess(self, output: str, defines: Sequence[str]) -> Completed:
        options = [*defines, *self._cuda.preprocessing(), *self._headers()]
        done = self._host.preprocess(MAIN, output, options, self._cwd)
        if done.returncode == 0:
            # NVIDIA's front end obeys what a compiler's own reader of such a file does not.
            text = (self._cwd / output).read_text(errors="replace")
            if refusal := refused_directive(text, self._cwd):
                return Completed(1, refusal)
        return done

    def _headers(self) -> list[str]:
        architectures = f"-D__CUDA_ARCH_LIST__={self._arch.macro}"
        mathematics = "-DCUDA_DOUBLE_MATH_FUNCTIONS"
        return [architectures, mathematics, f"-I{INCLUDE}", "-I.", *self._cuda.headers()]

    def _require(self, done: Completed) -> None:
        if done.returncode:
            raise compiler_fault(done.messages, self._sources, self._prefixes)


def _is_entry(symbol: Symbol) -> bool:
    return symbol.defined and symbol.function and not symbol.name.startswith(("_Z", "__"))
