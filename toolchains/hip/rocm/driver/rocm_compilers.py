"""The compilers for AMD's processors: clang of the ziglang wheel, and that of a ROCm."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from adopted import AdoptedCompiler
from architectures import Architecture
from compiler import BASELINE, Compiler, Completed, only_these, run_tool
from compilers import OWN_FILES, ZigCompiler
from device_constants import device_constants
from elf import Machine
from faults import ToolchainFault
from inline_assembly import refusal_on_device, refusal_on_host

_HIP = Path(__file__).resolve().parents[2]
INCLUDES = (_HIP / "rocm" / "include", _HIP / "include")
ASSEMBLY = "kernel.s"
HOST_ASSEMBLY = "host.s"
DEVICE_OBJECT = "device.o"
CODE_OBJECT = "kernel.co"
HOST_OBJECT = "host.o"
BUNDLE = "fatbin.S"
_SYSTEM = tuple(map(Path, ("/usr/include", "/usr/lib", "/usr/lib64", "/lib", "/lib64")))
"""Where clang finds the machine's C++ library."""
_LIBRARIES = ("ocml.bc", "ockl.bc")
_CONSTANTS = "constants"
_HOST_TARGET = "--target=x86_64-unknown-linux-gnu"
_LINES = ("-gline-tables-only",)
_ASSEMBLED = ("-Xclang", "-emit-obj")
_LANGUAGE = (
    *("-x", "hip", "-std=gnu++17", "-O3", "-g0", "-w", "-ferror-limit=20", "-fno-ident"),
    # No symbol may depend on the place of the source or on the command.
    *("-fuse-cuid=none", "-fno-exceptions", "-D__HIP_PLATFORM_AMD__=1", "-I."),
)
_HOST = ("-fPIC", "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables")


class RocmCompiler(Compiler, Protocol):
    """Turns one HIP source into code for one of AMD's processors and for the host.

    ``cwd`` is the directory of the build; the names of files there are this module's.
    ``host_part`` names the sources that a library has besides the author's.
    """

    host_part: tuple[str, ...]

    def device(self, source: str, architecture: Architecture, cwd: Path, *more: str) -> Completed:
        """Make ``kernel.s``; ``more`` are options of clang."""
        ...

    def host(self, source: str, architecture: Architecture, cwd: Path) -> Completed:
        """Make ``host.o``, whose ``__hip_fatbin`` is undefined."""
        ...

    def code_object(self, architecture: Architecture, cwd: Path) -> Completed:
        """Make ``kernel.co`` of ``kernel.s``."""
        ...


def find_rocm_compiler(choice: str, libraries: Path | None) -> RocmCompiler:
    """``zig:DIR`` with the directory of Triton's AMD backend, or ``rocm:DIR``, an installation."""
    kind, _, path = choice.partition(":")
    directory = Path(path).absolute()
    if kind == "rocm":
        return InstalledRocm(directory)
    if libraries is None:
        raise ToolchainFault("zig needs --libraries, the directory of AMD's headers and bitcode")
    return ZigRocm(directory, libraries.absolute())


def checked_device(
    compiler: RocmCompiler, source: str, architecture: Architecture, cwd: Path
) -> Completed:
    """Make ``kernel.s``, which reads no file."""
    done = compiler.device(source, architecture, cwd)
    if done.returncode or not refusal_on_device(
        (cwd / ASSEMBLY).read_text(errors="replace"), source
    ):
        return done
    compiler.device(source, architecture, cwd, *_LINES)
    return Completed(1, refusal_on_device((cwd / ASSEMBLY).read_text(errors="replace"), source))


def assembled_device(
    compiler: RocmCompiler, source: str, architecture: Architecture, cwd: Path
) -> Completed:
    """Clang's message about a ``kernel.s`` that does not assemble, in terms of the source."""
    return compiler.device(source, architecture, cwd, *_ASSEMBLED)


def _assembled_host(
    compiling: Sequence[str], assembler: Sequence[str], source: str, cwd: Path
) -> Completed:
    """Make ``host.o`` by way of assembly, which says whether any of it is the source's own."""
    command = [*compiling, "--offload-host-only", "-fverbose-asm", "-S", "-o", HOST_ASSEMBLY]
    done = run_tool([*command, source], cwd)
    if done.returncode:
        return done
    if refusal_on_host((cwd / HOST_ASSEMBLY).read_text(errors="replace"), source):
        run_tool([*command, *_LINES, source], cwd)
        assembly = (cwd / HOST_ASSEMBLY).read_text(errors="replace")
        return Completed(1, refusal_on_host(assembly, source))
    return run_tool([*assembler, "-c", HOST_ASSEMBLY, "-o", HOST_OBJECT], cwd)


class ZigRocm(ZigCompiler):
    """Zig's clang with AMD's headers and device libraries, which Triton's wheel carries."""

    host_part: tuple[str, ...] = (BUNDLE, "unload.cpp")

    def __init__(self, directory: Path, libraries: Path) -> None:
        super().__init__(directory, Machine.X86_64)
        self._headers_of_amd = libraries / "include"
        self._bitcode = libraries / "lib"
        self._includes = (*INCLUDES, self._headers_of_amd)
        self.prefixes = (*self.prefixes, *(f"{path}/" for path in self._includes))
        for name in _LIBRARIES:
            if not (self._bitcode / name).is_file():
                raise ToolchainFault(f"no {name} in {self._bitcode}")

    def device(self, source: str, architecture: Architecture, cwd: Path, *more: str) -> Completed:
        """Make ``kernel.s``."""
        done = self._write_constants(architecture, cwd)
        if done.returncode:
            raise ToolchainFault(f"cannot make the device's constants:\n{done.messages}")
        bitcode = [str(self._bitcode / name) for name in _LIBRARIES] + [f"{_CONSTANTS}.bc"]
        options = [f"--offload-arch={architecture.name}", "--offload-device-only"]
        options += ["--no-gpu-bundle-output", "-S"]
        for name in bitcode:
            options += ["-Xclang", "-mlink-builtin-bitcode", "-Xclang", name]
        return run_tool([*self._hip(source, cwd), *options, *more, source, "-o", ASSEMBLY], cwd)

    def host(self, source: str, architecture: Architecture, cwd: Path) -> Completed:
        """Make ``host.o``, without inline assembly.

        Clang's own switch against that (-fno-gnu-inline-asm) is the parser's, which reads the
        bodies of kernels on this side, too; what it writes has none of these.
        """
        options = [f"--offload-arch={architecture.name}", BASELINE[self.machine], *_HOST]
        assembler = [str(self._zig), "clang", _HOST_TARGET]
        return _assembled_host([*self._hip(source, cwd), *options], assembler, source, cwd)

    def code_object(self, architecture: Architecture, cwd: Path) -> Completed:
        """Make ``kernel.co`` of ``kernel.s``."""
        target = ["--target=amdgcn-amd-amdhsa", f"-mcpu={architecture.name}"]
        done = run_tool(
            [str(self._zig), "clang", *target, "-c", ASSEMBLY, "-o", DEVICE_OBJECT], cwd
        )
        if done.returncode:
            return done
        options = ["-shared", "--no-undefined", "--build-id=none", *OWN_FILES]
        command = [str(self._zig), "ld.lld", *options, DEVICE_OBJECT, "-o", CODE_OBJECT]
        return run_tool(command, cwd)

    def _hip(self, source: str, cwd: Path) -> list[str]:
        headers = [option for path in self._includes for option in ("-isystem", str(path))]
        command = [str(self._zig), "clang", _HOST_TARGET, *_LANGUAGE, "-nogpuinc", "-nogpulib"]
        searched = [*self.library_options(), *headers]
        trusted = Path(source).is_absolute()
        files = self._files([*searched, f"-I{self._bitcode}"], cwd, trusted=trusted)
        return [*command, *searched, *files]

    def _write_constants(self, architecture: Architecture, cwd: Path) -> Completed:
        (cwd / f"{_CONSTANTS}.ll").write_text(device_constants(architecture))
        command = [str(self._zig), "clang", "-x", "ir", "--target=amdgcn-amd-amdhsa", "-nogpulib"]
        command += ["-emit-llvm", "-c", f"{_CONSTANTS}.ll", "-o", f"{_CONSTANTS}.bc"]
        return run_tool(command, cwd)


class InstalledRocm(AdoptedCompiler):
    """Clang of a ROCm installation, with its own headers and device libraries.

    It links with the start-up code of this machine's compiler, which unloads what it loads. Of the
    machine's files it sees its own and the system's headers and libraries, and the task's.
    """

    host_part: tuple[str, ...] = (BUNDLE,)

    def __init__(self, directory: Path) -> None:
        llvm = next((d for d in ("llvm/bin", "lib/llvm/bin") if (directory / d).is_dir()), "")
        self._bin = directory / llvm
        self._clang = str(self._bin / "clang++")
        if not llvm or not (self._bin / "clang++").is_file():
            raise ToolchainFault(f"no clang++ of ROCm below {directory}")
        super().__init__(self._clang, Machine.X86_64)
        self._root = directory
        own = (directory, directory.resolve(), Path(self._clang).resolve().parents[1])
        self._seen = {str(path): path for path in (*own, *_SYSTEM) if path.is_dir()}
        self.prefixes = (*self.prefixes, f"{directory}/")

    def device(self, source: str, architecture: Architecture, cwd: Path, *more: str) -> Completed:
        """Make ``kernel.s``."""
        options = [f"--offload-arch={architecture.name}", "--offload-device-only"]
        options += ["--no-gpu-bundle-output", "-S"]
        return run_tool([*self._hip(source, cwd), *options, *more, source, "-o", ASSEMBLY], cwd)

    def host(self, source: str, architecture: Architecture, cwd: Path) -> Completed:
        """Make ``host.o``, without inline assembly."""
        options = [f"--offload-arch={architecture.name}", BASELINE[self.machine], *_HOST]
        return _assembled_host([*self._hip(source, cwd), *options], [self._clang], source, cwd)

    def code_object(self, architecture: Architecture, cwd: Path) -> Completed:
        """Make ``kernel.co`` of ``kernel.s``."""
        target = ["--target=amdgcn-amd-amdhsa", f"-mcpu={architecture.name}", "-nogpulib"]
        done = run_tool([self._clang, *target, "-c", ASSEMBLY, "-o", DEVICE_OBJECT], cwd)
        if done.returncode:
            return done
        options = ["-shared", "--no-undefined", "--build-id=none", *OWN_FILES]
        linker = str(self._bin / "ld.lld")
        return run_tool([linker, *options, DEVICE_OBJECT, "-o", CODE_OBJECT], cwd)

    def _hip(self, source: str, cwd: Path) -> list[str]:
        # As a system directory: what --rocm-path adds comes after the machine's own headers.
        headers = ["-isystem", str(self._root / "include")]
        files = only_these(self._seen, headers, cwd, trusted=Path(source).is_absolute())
        return [self._clang, *_LANGUAGE, f"--rocm-path={self._root}", *headers, *files]
