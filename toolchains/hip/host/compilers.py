"""Clang of the ziglang wheel, and the choice between it and an adopted compiler."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from adopted import AdoptedCompiler
from compiler import (
    BASELINE,
    COMMON,
    Compiler,
    Completed,
    Link,
    host_machine,
    only_these,
    run_tool,
    write_version_script,
)
from elf import Machine
from faults import ToolchainFault
from stubs import stub_library
from symbols import (
    LIBM,
    LIBRARY,
    LIBRARY_TAKES,
    SORTING,
    THREADS,
    THREADS_TAKE,
    compiler_support,
    version,
)

_LOADER = {
    Machine.X86_64: "/lib64/ld-linux-x86-64.so.2",
    Machine.AARCH64: "/lib/ld-linux-aarch64.so.1",
}
LIBRARIES = "/zig"
OWN_FILES = ("--no-dependent-libraries", "-nostdlib")
"""Options of lld against names in an object, as pragmas put them there: no file is looked for."""
_INTERMEDIATE = (
    *("-S", "-emit-llvm", "-Xclang", "-disable-llvm-passes"),
    *("-gline-tables-only", "-gno-column-info"),
)
_HERE = Path(__file__).resolve().parent
_SUPPORT = _HERE / "support"
_AT_EXIT = "__cxa_atexit"
_LIBRARY, _SORTING, _THREADS = (
    _HERE / name for name in ("library.cpp", "sorting.cpp", "threads.cpp")
)
# The wheel's names of a processor: the target, and its family among the C library's headers.
_ZIG_NAMES = {Machine.X86_64: ("x86_64", "x86"), Machine.AARCH64: ("aarch64", "aarch64")}
_ZIG_DEFINES = (
    "-D__GLIBC_MINOR__=34",
    "-D_LIBCPP_HAS_MUSL_LIBC=0",
    "-D_LIBCPP_HAS_THREADS=1",
    "-D_LIBCPP_HAS_THREAD_API_PTHREAD=1",
    "-D_LIBCPP_HAS_MONOTONIC_CLOCK=1",
    "-D_LIBCPP_ABI_VERSION=1",
    "-D_LIBCPP_ABI_NAMESPACE=__1",
    "-D_LIBCPP_HARDENING_MODE=_LIBCPP_HARDENING_MODE_NONE",
    "-D_LIBCPP_ASSERTION_SEMANTIC_DEFAULT=_LIBCPP_ASSERTION_SEMANTIC_IGNORE",
)


def find_compiler(choice: str) -> Compiler:
    """``zig:DIR`` (an installed ziglang package) or ``cxx:PATH`` (g++ or clang++)."""
    kind, _, path = choice.partition(":")
    if kind == "zig":
        return ZigCompiler(Path(path), host_machine())
    # A name is searched for; a path must hold in another working directory.
    command = str(Path(path).absolute()) if "/" in path else path
    return AdoptedCompiler(command, host_machine())


def compiler_choice(*forms: str) -> Callable[[str], str]:
    """The type of a ``--compiler`` that takes ``forms``, such as ``zig:DIR``, for argparse."""
    kinds = {form.partition(":")[0] for form in forms}

    def check(text: str) -> str:
        kind, _, path = text.partition(":")
        if kind not in kinds or not path:
            raise argparse.ArgumentTypeError(f"expected {' or '.join(forms)}")
        return text

    return check


class ZigCompiler:
    """Clang and lld of the ziglang wheel, used directly: no file of the machine is read.

    ``zig c++`` would first build a C++ library for two minutes. ``zig clang`` compiles against
    the wheel's headers, and ``zig ld.lld`` links against stubs that name glibc's symbols; glibc
    itself is found when the result is loaded. To clang the wheel's headers lie in ``/zig``,
    wherever the wheel is.
    """

    def __init__(self, directory: Path, machine: Machine) -> None:
        self.machine = machine
        self._zig = directory.absolute() / "zig"
        self._lib = directory.absolute() / "lib"
        self.prefixes: tuple[str, ...] = (f"{LIBRARIES}/",)
        self.reads_hip = True
        # An `asm` put together by macros, which the check of the source cannot see.
        # Types at run time need a part of the library that is not here.
        self.kernel_options: tuple[str, ...] = ("-fno-gnu-inline-asm", "-fno-rtti")
        self._computing = compiler_support(machine)
        self.own_symbols = self._computing | LIBRARY | THREADS | SORTING.keys()
        if not self._zig.is_file():
            raise ToolchainFault(f"no zig in {directory}")

    def compile(self, source: str, output: str, options: Sequence[str], cwd: Path) -> Completed:
        """Compile one C++ file, or assemble one whose name ends with ``.S``."""
        command = [*self.clang, *options]
        if not source.endswith(".S"):
            trusted = Path(source).is_absolute()  # a kernel's build outputs are in `cwd`
            command += self.language(options, cwd, trusted=trusted)
        return run_tool([*command, "-c", source, "-o", output], cwd)

    def preprocess(self, source: str, output: str, options: Sequence[str], cwd: Path) -> Completed:
        """Write what ``compile`` with the same ``options`` reads once macros are expanded."""
        command = [*self.clang, *options, *self.language(options, cwd)]
        return run_tool([*command, "-E", source, "-o", output], cwd)

    def intermediate(
        self, source: str, output: str, options: Sequence[str], cwd: Path
    ) -> Completed:
        """Write LLVM's code of what ``compile`` reads, not optimised yet, with its lines."""
        command = [*self.clang, *options, *self.language(options, cwd), *_INTERMEDIATE]
        return run_tool([*command, source, "-o", output], cwd)

    def read_hip(
        self, source: str, options: Sequence[str], cwd: Path, *, device: str = ""
    ) -> Completed:
        """Read a file by clang's front end of HIP, which knows the device's functions.

        The processor that is named decides nothing here: both sides are read for this one.
        """
        library = self.library_options()
        files = self._files([*options, *library], cwd)
        language = ["-x", "hip", "--offload-host-only", "--offload-arch=gfx90a"]
        language += ["-nogpuinc", "-nogpulib", *library, *files]
        side = ["-Xclang", "-fcuda-is-device", *_INTERMEDIATE, "-o", device]
        side = side if device else ["-fsyntax-only"]
        return run_tool([*self.clang, *COMMON, *language, *options, *side, source], cwd)

    @property
    def clang(self) -> list[str]:
        """Clang as a command that makes code for this processor."""
        target = f"--target={_ZIG_NAMES[self.machine][0]}-unknown-linux-gnu"
        return [str(self._zig), "clang", target, BASELINE[self.machine]]

    def language(self, options: Sequence[str], cwd: Path, *, trusted: bool = False) -> list[str]:
        """What clang is told to read C++, besides ``options``; see ``only_these``."""
        library = self.library_options()
        files = self._files([*options, *library], cwd, trusted=trusted)
        return [*COMMON, "-x", "c++", *library, *files]

    def _files(self, options: Sequence[str], cwd: Path, *, trusted: bool = False) -> list[str]:
        """Options that show clang the wheel's headers, and for a kernel nothing else of here."""
        return only_these({LIBRARIES: self._lib}, options, cwd, trusted=trusted)

    def link_library(self, link: Link, cwd: Path) -> Completed:
        """Link a shared library. What HIP's runtime provides is found when it is loaded."""
        options = ["-shared", write_version_script(link.exports, cwd)]
        options += ["--strip-all"] if not link.debug else []
        options += ["-T", link.script] if link.script else []
        if link.soname:
            options += [f"-soname={link.soname}", "-z", "nodelete"]
        objects = link.objects
        if link.before:  # a library without anything says what is needed
            (cwd / link.before).write_bytes(stub_library(self.machine, link.before, {}))
            options += ["-Bsymbolic", "-rpath=$ORIGIN"]
            objects = [*objects, link.before]
        return self._link(options, objects, link.imports, link.output, cwd)

    def link_program(self, link: Link, cwd: Path) -> Completed:
        """Link a position-independent program for the glibc of the machine that will run it."""
        done = self.compile(str(_HERE / "start.S"), "start.o", (), cwd)
        if done.returncode:
            return done
        options = ["-pie", "--strip-all", f"--dynamic-linker={_LOADER[self.machine]}"]
        objects = ["start.o", *link.objects]
        imports = ["__libc_start_main", *link.imports]
        return self._link(options, objects, imports, link.output, cwd)

    def _link(
        self,
        options: Sequence[str],
        objects: Sequence[str],
        imports: Sequence[str],
        output: str,
        cwd: Path,
    ) -> Completed:
        fixed = ["--build-id=none", "--hash-style=gnu", *OWN_FILES]
        fixed += ["-z", "relro", "-z", "now", "-z", "noexecstack"]
        support: list[str] = []
        wanted = {name for name in imports if name not in self.own_symbols - {_AT_EXIT}}
        if not self._computing.isdisjoint(imports):
            support += [
                self._compile_support(source, cwd) for source in sorted(_SUPPORT.glob("*.cpp"))
            ]
        if not THREADS.isdisjoint(imports):
            support.append(self._compile_support(_THREADS, cwd))
            wanted |= THREADS_TAKE
        for number, name in enumerate(sorted(SORTING.keys() & set(imports))):
            sorted_ = f"-DSORTED={SORTING[name]}"
            support.append(self._compile_support(_SORTING, cwd, sorted_, part=f".{number}"))
        # The code that registers a GPU's kernels takes it from the C library.
        if not ((LIBRARY | THREADS) - {_AT_EXIT}).isdisjoint(imports):
            support.append(self._compile_support(_LIBRARY, cwd))
            wanted |= LIBRARY_TAKES
        if support:
            fixed.append("--gc-sections")
        stubs = self._write_stubs(sorted(wanted), cwd)
        inputs = [*objects, *support, *stubs]
        return run_tool([str(self._zig), "ld.lld", *options, *fixed, *inputs, "-o", output], cwd)

    def _compile_support(self, source: Path, cwd: Path, *defines: str, part: str = "") -> str:
        """The object with some of ``own_symbols``; a ``part`` of them where it has several."""
        name = f"support.{source.stem}{part}.o"
        options = ["-O2", "-ffunction-sections", "-fno-builtin", f"-I{_SUPPORT}", *defines]
        done = self.compile(str(source), name, options, cwd)
        if done.returncode:
            raise ToolchainFault(f"cannot compile {source.name}:\n{done.messages}")
        return name

    def _write_stubs(self, imports: Sequence[str], cwd: Path) -> list[str]:
        mathematics = [name for name in imports if name in LIBM]
        others = [name for name in imports if name not in LIBM]
        stubs = {"libm.so.6": mathematics, "libc.so.6": others}
        for soname, names in stubs.items():
            versions = {name: version(name, self.machine) for name in names}
            (cwd / soname).write_bytes(stub_library(self.machine, soname, versions))
        return [soname for soname, names in stubs.items() if names]

    def library_options(self) -> list[str]:
        """Flags by which C++ finds the wheel's own libraries, and none of the machine."""
        exact, family = _ZIG_NAMES[self.machine]
        directories = ("libcxx/include", "libcxxabi/include", "include")
        libc = (
            f"{family}-linux-gnu",
            f"{exact}-linux-gnu",
            "generic-glibc",
            f"{family}-linux-any",
            "any-linux-any",
        )
        flags = [*_ZIG_DEFINES, "-nostdinc", "-nostdinc++"]
        for directory in [*directories, *(f"libc/include/{name}" for name in libc)]:
            if (self._lib / directory).is_dir():
                flags += ["-isystem", f"{LIBRARIES}/{directory}"]
        return flags
