"""The compilers that there are: clang of the ziglang wheel, and an adopted g++ or clang++."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from compiler import (
    BASELINE,
    COMMON,
    DRIVER,
    Compiler,
    Completed,
    Link,
    host_machine,
    run_tool,
    write_version_script,
)
from elf import Machine
from faults import ToolchainFault
from instrumentation import ACCESSES, CHECKS, GAPS, keep_variables, pass_on
from stubs import stub_library
from symbols import COMPILER_SUPPORT, LIBM, RENAMED, version

_LOADER = {
    Machine.X86_64: "/lib64/ld-linux-x86-64.so.2",
    Machine.AARCH64: "/lib/ld-linux-aarch64.so.1",
}
# The wheel's names of a processor: the target, and its family among the C library's headers.
_ZIG_NAMES = {Machine.X86_64: ("x86_64", "x86"), Machine.AARCH64: ("aarch64", "aarch64")}
_ZIG_DEFINES = (
    "-D__GLIBC_MINOR__=34",
    "-D_LIBCPP_HAS_MUSL_LIBC=0",
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


class ZigCompiler:
    """Clang and lld of the ziglang wheel, used directly: nothing of the machine is read.

    ``zig c++`` would first build a C++ library for two minutes. ``zig clang`` compiles against
    the wheel's headers, and ``zig ld.lld`` links against stubs that name glibc's symbols; glibc
    itself is found when the result is loaded.
    """

    def __init__(self, directory: Path, machine: Machine) -> None:
        self.machine = machine
        self._zig = directory.absolute() / "zig"
        self._lib = directory.absolute() / "lib"
        self.prefixes: tuple[str, ...] = (f"{self._lib}/",)
        # An `asm` put together by macros, which the check of the source cannot see.
        self.kernel_options: tuple[str, ...] = ("-fno-gnu-inline-asm",)
        self.own_symbols: frozenset[str] = frozenset()
        if not self._zig.is_file():
            raise ToolchainFault(f"no zig in {directory}")

    def compile(self, source: str, output: str, options: Sequence[str], cwd: Path) -> Completed:
        """Compile one C++ file, or assemble one whose name ends with ``.S``."""
        target = f"--target={_ZIG_NAMES[self.machine][0]}-unknown-linux-gnu"
        command = [str(self._zig), "clang", target, BASELINE[self.machine], *options]
        if not source.endswith(".S"):
            command += [*COMMON, "-x", "c++", *self.library_options()]
        return run_tool([*command, "-c", source, "-o", output], cwd)

    def sanitize(self, source: str, output: str, options: Sequence[str], cwd: Path) -> Completed:
        """Compile one C++ file such that the sanitizer hears of its accesses to memory.

        LLVM checks indices in the first of three steps, instruments variables in the second and
        accesses in the third.
        """
        target = f"--target={_ZIG_NAMES[self.machine][0]}-unknown-linux-gnu"
        clang = [str(self._zig), "clang", target, BASELINE[self.machine]]
        language = [*COMMON, "-x", "c++", *self.library_options()]
        checked, padded = f"{output}.ll", f"{output}.padded.ll"
        done = run_tool([*clang, *language, *options, *CHECKS, source, "-o", checked], cwd)
        if done.returncode:
            return done
        _edit(cwd / checked, keep_variables)
        done = run_tool([*clang, *GAPS, "-x", "ir", checked, "-o", padded], cwd)
        if done.returncode:
            return done
        _edit(cwd / padded, pass_on)
        return run_tool([*clang, *ACCESSES, "-x", "ir", padded, "-o", output], cwd)

    def link_library(self, link: Link, cwd: Path) -> Completed:
        """Link a shared library. What HIP's runtime provides is found when it is loaded."""
        options = ["-shared", write_version_script(link.exports, cwd)]
        options += ["--strip-all"] if not link.debug else []
        options += ["-T", link.script] if link.script else []
        if link.soname:
            options += [f"-soname={link.soname}", "-z", "nodelete"]
        return self._link(options, link.objects, link.imports, link.output, cwd)

    def link_program(self, link: Link, cwd: Path) -> Completed:
        """Link a position-independent program for the glibc of the machine that will run it."""
        done = self.compile(str(DRIVER / "start.S"), "start.o", (), cwd)
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
        fixed = ["--build-id=none", "--hash-style=gnu"]
        fixed += ["-z", "relro", "-z", "now", "-z", "noexecstack"]
        stubs = self._write_stubs(imports, cwd)
        command = [str(self._zig), "ld.lld", *options, *fixed, *objects, *stubs, "-o", output]
        return run_tool(command, cwd)

    def _write_stubs(self, imports: Sequence[str], cwd: Path) -> list[str]:
        mathematics = [name for name in imports if name in LIBM]
        others = [name for name in imports if name not in LIBM]
        stubs = {"libm.so.6": mathematics, "libc.so.6": others}
        for soname, names in stubs.items():
            versions = {name: version(name, self.machine) for name in names}
            (cwd / soname).write_bytes(stub_library(self.machine, soname, versions))
        return [soname for soname, names in stubs.items() if names]

    def library_options(self) -> list[str]:
        """What has C++ find the wheel's own libraries, and nothing of the machine."""
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
                flags += ["-isystem", str(self._lib / directory)]
        return flags


def _edit(path: Path, change: Callable[[str], str]) -> None:
    path.write_text(change(path.read_text("utf-8")), "utf-8")


class AdoptedCompiler:
    """A g++ or clang++ of the machine, with the machine's headers and libraries."""

    prefixes: tuple[str, ...] = ("/usr/include/", "/usr/lib/")
    kernel_options: tuple[str, ...] = ()
    own_symbols = COMPILER_SUPPORT | RENAMED

    def __init__(self, path: str, machine: Machine) -> None:
        self.machine = machine
        self._path = path

    def compile(self, source: str, output: str, options: Sequence[str], cwd: Path) -> Completed:
        """Compile one C++ file, or assemble one whose name ends with ``.S``."""
        command = [self._path, BASELINE[self.machine], *options]
        if not source.endswith(".S"):
            command += [*COMMON, "-fno-semantic-interposition", "-x", "c++"]
        return run_tool([*command, "-c", source, "-o", output], cwd)

    def link_library(self, link: Link, cwd: Path) -> Completed:
        """Link a shared library. What HIP's runtime provides is found when it is loaded."""
        options = ["-shared", f"-Wl,{write_version_script(link.exports, cwd)}"]
        if link.soname:
            options += [f"-Wl,-soname,{link.soname}", "-Wl,-z,nodelete"]
        return self._link(options, link, cwd)

    def link_program(self, link: Link, cwd: Path) -> Completed:
        """Link a program."""
        return self._link(["-pie"], link, cwd)

    def _link(self, options: Sequence[str], link: Link, cwd: Path) -> Completed:
        fixed = ["-nodefaultlibs", "-s", "-Wl,--build-id=none", "-Wl,-z,now"]
        libraries = ["-Wl,--as-needed", "-lm", "-ldl", "-lpthread", "-lc", "-lgcc"]
        command = [self._path, *options, *fixed, *link.objects, *libraries, "-o", link.output]
        return run_tool(command, cwd)
