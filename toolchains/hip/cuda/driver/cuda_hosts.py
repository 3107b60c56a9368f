"""The compilers of the host's part: clang of the ziglang wheel, and an adopted g++ or clang++.

They also preprocess for the device: NVIDIA's tools read what a compiler for the host has prepared.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from adopted import NO_PROBES, AdoptedCompiler
from compiler import BASELINE, COMMON, Compiler, Completed, host_machine, run_tool
from compilers import LIBRARIES, ZigCompiler
from elf import Machine
from faults import ToolchainFault
from inline_assembly import refusal_on_host
from sources import MAIN
from symbols import compiler_support

_ASSEMBLY = "host.S"
HOST_SOURCE = "host.cpp"
"""The output of NVIDIA's front end for a source."""
_DEFINES = (
    # Which compilers NVIDIA's headers expect is not for them to say here.
    "-D__NV_NO_HOST_COMPILER_CHECK=1",
    # An inline assembler statement is for the device.
    "-fno-exceptions",
)
# The C library's, without its own rsqrt, which is CUDA's name too.
_C_LIBRARY = ("-D__GLIBC_MINOR__=34", "-U_GNU_SOURCE", "-D_DEFAULT_SOURCE")
_MULTIARCH = {Machine.X86_64: "x86_64-linux-gnu", Machine.AARCH64: "aarch64-linux-gnu"}
_LIBRARY = "c++/12"
_MACRO = re.compile(r"#define (__clang_major__|__clang_minor__|__GNUC__|__GNUC_MINOR__) (\d+)")


class CudaHost(Compiler, Protocol):
    """Compiles the host's part of a source, and preprocesses for both parts."""

    @property
    def dialect(self) -> Sequence[str]:
        """Options by which NVIDIA's front end reads what this compiler has preprocessed."""
        ...

    def preprocess(self, source: str, output: str, options: Sequence[str], cwd: Path) -> Completed:
        """Expand macros and inclusions."""
        ...


class ZigHost(ZigCompiler):
    """Zig's clang with the GNU C++ library's headers: NVIDIA's front end cannot read LLVM's."""

    def __init__(self, directory: Path, headers: Path, machine: Machine) -> None:
        super().__init__(directory, machine)
        self.own_symbols = compiler_support(machine)  # all else is of LLVM's C++ library
        self._headers = headers.absolute()
        if not (self._headers / _LIBRARY).is_dir():
            raise ToolchainFault(f"no headers of the C++ library in {headers}")
        self.prefixes = (*self.prefixes, f"{self._headers}/")

    @property
    def dialect(self) -> Sequence[str]:
        """It is clang 22; the front end treats it as the newest version that it knows."""
        return ("--clang", "--clang_version=200100", "--unicode_source_kind=UTF-8")

    def compile(self, source: str, output: str, options: Sequence[str], cwd: Path) -> Completed:
        """Compile one C++ file, or assemble one whose name ends with ``.S``.

        Of a kernel's host part no inline assembly is taken; NVIDIA's headers have some, unused.
        """
        if source != HOST_SOURCE:
            return super().compile(source, output, options, cwd)
        done = super().compile(source, _ASSEMBLY, [*options, "-S", "-fverbose-asm"], cwd)
        if done.returncode:
            return done
        assembly = (cwd / _ASSEMBLY).read_text(errors="replace")
        if refusal := refusal_on_host(assembly, MAIN):
            return Completed(1, refusal)
        return super().compile(_ASSEMBLY, output, (), cwd)

    def preprocess(self, source: str, output: str, options: Sequence[str], cwd: Path) -> Completed:
        """Expand macros and inclusions."""
        target = f"--target={'x86_64' if self.machine is Machine.X86_64 else 'aarch64'}-linux-gnu"
        command = [str(self._zig), "clang", target, BASELINE[self.machine], *COMMON, *_DEFINES]
        options = [*options, *self.library_options()]
        command += ["-E", "-x", "c++", *options, *self._files(options, cwd)]
        return run_tool([*command, source, "-o", output], cwd)

    def library_options(self) -> list[str]:
        """Flags by which C++ finds the pinned headers, and no headers of the machine."""
        inherited = super().library_options()
        libc = [path for path in inherited if path.startswith(f"{LIBRARIES}/")]
        own = [self._headers / _LIBRARY, self._headers / _MULTIARCH[self.machine] / _LIBRARY]
        directories = [*map(str, own), *(path for path in libc if "/libcxx" not in path)]
        flags = [*_C_LIBRARY, "-nostdinc", "-nostdinc++"]
        for directory in directories:
            flags += ["-isystem", directory]
        return flags


class AdoptedHost(AdoptedCompiler):
    """A g++ or clang++ of the machine, with the machine's headers."""

    def __init__(self, path: str, machine: Machine) -> None:
        super().__init__(path, machine)
        self.dialect: Sequence[str] = _dialect(path)

    def compile(self, source: str, output: str, options: Sequence[str], cwd: Path) -> Completed:
        """Compile one C++ file, or assemble one whose name ends with ``.S``."""
        if source != HOST_SOURCE:
            return super().compile(source, output, options, cwd)
        command = [self._path, BASELINE[self.machine], *options, *COMMON]
        return self.assemble([*command, "-x", "c++"], source, output, cwd)

    def preprocess(self, source: str, output: str, options: Sequence[str], cwd: Path) -> Completed:
        """Expand macros and inclusions."""
        command = [self._path, BASELINE[self.machine], *COMMON, *_DEFINES, *NO_PROBES]
        command += ["-x", "c++", *options]
        done = self.examine(command, cwd)
        return done if done.returncode else run_tool([*command, "-E", source, "-o", output], cwd)


def find_host(choice: str, headers: Path | None) -> CudaHost:
    """``zig:DIR`` with the C++ library's headers, or ``cxx:PATH`` (g++ or clang++)."""
    kind, _, path = choice.partition(":")
    if kind == "cxx":
        command = str(Path(path).absolute()) if "/" in path else path
        return AdoptedHost(command, host_machine())
    if headers is None:
        raise ToolchainFault("zig needs --headers, the directory of the C++ library's headers")
    return ZigHost(Path(path), headers, host_machine())


def _dialect(compiler: str) -> Sequence[str]:
    done = run_tool([compiler, "-dM", "-E", "-x", "c++", "/dev/null"], Path("/"))
    macros = dict(_MACRO.findall(done.messages))
    if done.returncode or "__GNUC__" not in macros:
        raise ToolchainFault(f"{compiler} is not a C++ compiler:\n{done.messages}")
    if "__clang_major__" in macros:
        version = f"{macros['__clang_major__']}{int(macros['__clang_minor__']):02}00"
        return ("--clang", f"--clang_version={version}", "--unicode_source_kind=UTF-8")
    return (f"--gnu_version={macros['__GNUC__']}{int(macros['__GNUC_MINOR__']):02}00",)
