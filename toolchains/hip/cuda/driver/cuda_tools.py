"""NVIDIA's compiler, tool by tool: what nvcc would run, under names of our own.

nvcc itself puts names of temporary files and a number that depends on the directory into what it
makes, so that the same source twice gives different bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from compiler import Completed, run_tool
from cuda_architectures import Architecture
from cuda_hosts import HOST_SOURCE, CudaHost
from faults import ToolchainFault
from sources import MAIN

CUBIN = "kernel.cubin"
PTX = "kernel.ptx"
_VERSION = re.compile(r"#define\s+CUDART_VERSION\s+(\d+)")
_FILE = re.compile(r'(?m)^(\s*\.file\s+\d+\s+)"([^"]*)"(?:, *\d+, *\d+)?')
_EMBEDDED = "fatbin.c"
_ASSEMBLY = re.compile(r"asm\(\n.*?\);", re.DOTALL)
_WORDS = re.compile(r'"\.quad ([^\\"]*)')
_DATA = '__attribute__((section(".nv_fatbin"), aligned(8), used, visibility("hidden")))'
_MAJOR = 13
"""The one whose tools take the options below."""
_MODULE = "_kernel_"
"""Distinguishes what is local to a source among several that are linked; here is only one."""
_ARITHMETIC = ("-ftz=0", "-prec_div=1", "-prec_sqrt=1", "-fmad=1")


@dataclass(frozen=True)
class CudaTools:
    """An installation of CUDA, or the packages that make one."""

    directory: Path
    include: Path
    runtime: Path
    """The library that kernels need when they run."""
    version: tuple[int, int]

    def preprocessing(self) -> list[str]:
        """The compiler's version macros for sources."""
        major, minor = self.version
        defines = [
            "__CUDACC__",
            "__NVCC__",
            f"__CUDACC_VER_MAJOR__={major}",
            f"__CUDACC_VER_MINOR__={minor}",
            "__CUDACC_VER_BUILD__=0",
            f"__CUDA_API_VER_MAJOR__={major}",
            f"__CUDA_API_VER_MINOR__={minor}",
            "__NVCC_DIAG_PRAGMA_SUPPORT__=1",
            "__CUDACC_DEVICE_ATOMIC_BUILTINS__=1",
            "__CUDACC_EXTENDED_LAMBDA__",
            "__CUDACC_RELAXED_CONSTEXPR__",
        ]
        return [f"-D{define}" for define in defines] + ["-include", "cuda_runtime.h"]

    def headers(self) -> list[str]:
        """Where its headers are."""
        return ["-isystem", str(self.include), "-isystem", str(self.include / "cccl")]

    def separate(self, source: str, host: CudaHost, cwd: Path) -> Completed:
        """Make the C++ of the host of a preprocessed source."""
        (cwd / "module").write_text(_MODULE)
        command = [str(self.directory / "bin" / "cudafe++"), *_front_end(host), "--m64"]
        command += ["--parse_templates", "--gen_c_file_name", HOST_SOURCE]
        command += ["--stub_file_name", "stub.c", "--module_id_file_name", "module"]
        return run_tool([*command, source], cwd)

    def device(
        self, source: str, host: CudaHost, arch: Architecture, cwd: Path, *, lines: bool = False
    ) -> Completed:
        """Make ``kernel.ptx``, and the launches of its kernels, of a preprocessed source.

        With ``lines`` the code says which line each instruction is of, and is the same otherwise.
        """
        (cwd / "module").write_text(_MODULE)
        command = [str(self.directory / "nvvm" / "bin" / "cicc"), *_front_end(host)]
        command += ["-arch", f"compute_{arch.exact}", "-m64", "--no-version-ident", *_ARITHMETIC]
        command += ["--include_file_name", "fatbin.c", "-tused"]
        command += ["--module_id_file_name", "module", "--gen_c_file_name", "device.c"]
        command += ["--stub_file_name", "stub.c", "--gen_device_file_name", "device.gpu"]
        command += ["-generate-line-info"] if lines else []
        done = run_tool([*command, source, "-o", PTX], cwd)
        if lines and not done.returncode:
            _forget_where(cwd / PTX, cwd)
        return done

    def assemble(self, arch: Architecture, cwd: Path, *, lines: bool = False) -> Completed:
        """Make ``kernel.cubin`` of ``kernel.ptx``; its messages say what kernels take."""
        command = [str(self.directory / "bin" / "ptxas"), "-v", f"-arch=sm_{arch.exact}", "-m64"]
        command += ["--generate-line-info"] if lines else []
        return run_tool([*command, PTX, "-o", CUBIN], cwd)

    def embed(self, arch: Architecture, cwd: Path) -> Completed:
        """Make ``fatbin.c``, by which the host's part holds ``kernel.cubin``."""
        command = [str(self.directory / "bin" / "fatbinary"), "--create=fatbin", "-64"]
        command += [f"--image3=kind=elf,sm={arch.exact},file={CUBIN}"]
        done = run_tool([*command, f"--embedded-fatbin={_EMBEDDED}"], cwd)
        if not done.returncode:
            _embed_without_assembly(cwd / _EMBEDDED)
        return done


def _embed_without_assembly(file: Path) -> None:
    """Make data of the one thing that NVIDIA has written in assembly, so that none need be there.

    Raises ToolchainFault if it is written in another way.
    """
    text = file.read_text()
    found = _ASSEMBLY.search(text)
    if found is None:
        raise ToolchainFault(f"{file.name} does not embed code as expected")
    words = ",".join(part for line in _WORDS.findall(found[0]) for part in line.split(","))
    data = f'extern "C" {_DATA} const unsigned long long fatbinData[] = {{{words}}};'
    file.write_text(text[: found.start()] + data + text[found.end() :])


def _forget_where(ptx: Path, cwd: Path) -> None:
    """Take out of the names of files where they lie, and when they were written.

    The assembler adds the latter again for files that it finds by these names.
    """

    def forget(file: re.Match[str]) -> str:
        path = Path(file[2])
        name = path.relative_to(cwd) if path.is_relative_to(cwd) else path.name
        return f'{file[1]}"source/{name}"'

    ptx.write_text(_FILE.sub(forget, ptx.read_text()))


def _front_end(host: CudaHost) -> list[str]:
    """The options of both C++ front ends, so that they agree on the names of kernels."""
    options = ["--c++17", "--static-host-stub", "--device-hidden-visibility", *host.dialect]
    options += ["--display_error_number", "--allow_managed"]
    # As in HIP: lambdas of the device, and constexpr functions on both sides.
    options += ["--extended-lambda", "--relaxed_constexpr"]
    return [*options, "--orig_src_file_name", MAIN, "--orig_src_path_name", MAIN]


def find_cuda(choice: str) -> CudaTools:
    """``nvcc:DIR``, an installation. Raises ToolchainFault if wrong."""
    kind, _, path = choice.partition(":")
    directory = Path(path).absolute()
    if kind != "nvcc":
        raise ToolchainFault(f"'{choice}' is not a compiler for CUDA; expected nvcc:DIR")
    for tool in ("bin/cudafe++", "nvvm/bin/cicc", "bin/ptxas", "bin/fatbinary"):
        if not (directory / tool).is_file():
            raise ToolchainFault(f"no {tool} in {directory}")
    include = directory / "include"
    version = _version(include / "cuda_runtime_api.h")
    if version[0] != _MAJOR:
        found = ".".join(map(str, version))
        raise ToolchainFault(f"CUDA {found} in {directory}; this needs version {_MAJOR}")
    runtimes = [directory / lib / f"libcudart.so.{_MAJOR}" for lib in ("lib", "lib64")]
    runtime = next((path for path in runtimes if path.is_file()), None)
    if runtime is None:
        raise ToolchainFault(f"no {runtimes[0].name} in {directory}")
    return CudaTools(directory, include, runtime, version)


def _version(header: Path) -> tuple[int, int]:
    try:
        match = _VERSION.search(header.read_text("utf-8", "replace"))
    except OSError as error:
        raise ToolchainFault(f"cannot read {header}: {error.strerror}") from error
    if match is None:
        raise ToolchainFault(f"{header} does not give the version of CUDA")
    number = int(match.group(1))
    return number // 1000, number % 1000 // 10
