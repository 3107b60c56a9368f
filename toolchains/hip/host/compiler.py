"""The interface of compilers for the host's CPU."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from threading import get_ident
from typing import IO, Protocol

from elf import Machine
from faults import ToolchainFault, ToolDied

# The same artefact on every machine of an architecture, so never what this machine has:
# AVX2, FMA and F16C (2013 and later); atomics and half-precision arithmetic (2017 and later).
BASELINE = {Machine.X86_64: "-march=x86-64-v3", Machine.AARCH64: "-march=armv8.2-a+fp16"}

COMMON = (
    "-std=gnu++17",
    "-fPIC",
    "-pthread",
    "-g0",
    "-w",
    "-ffp-contract=fast",
    "-fno-asynchronous-unwind-tables",
    "-fno-exceptions",
    "-fno-ident",
    "-fno-math-errno",
    "-fno-stack-protector",
    "-fno-threadsafe-statics",
    "-fno-trapping-math",
    "-fno-unwind-tables",
    "-fomit-frame-pointer",
)

_OVERLAY = "files.yaml"
_EPOCH = "0"
"""The time of every compilation, in seconds: what ``__TIME__`` and its like say."""

_MOST_SAID, _LAST_SAID = 4 << 20, 64 << 10
"""Bytes of a tool's output that are read: its first, and its last if there are more."""

_DIED = re.compile(rb"frontend command failed (?:with exit code (\d+)|due to signal)")
"""What clang's driver says of itself: to the signal it adds 128, where it knows that."""


@dataclass(frozen=True)
class Completed:
    """How a run of a tool ended."""

    returncode: int
    messages: str


@dataclass(frozen=True)
class Link:
    """What to link: object files, and the names that it exports and takes from the C library."""

    objects: Sequence[str]
    output: str
    imports: Sequence[str]
    exports: Sequence[str] = ()
    soname: str = ""
    before: str = ""
    """The library that this one wraps: loaded with it, from the same directory."""
    debug: bool = False
    """Whether lines of the source stay in the output."""
    script: str = ""
    """A linker script that adds to the usual one."""


class Compiler(Protocol):
    """Turns sources into objects, and objects into libraries and programs.

    Paths are absolute or relative to ``cwd``, the directory of the build.
    """

    machine: Machine
    prefixes: tuple[str, ...]
    """Directories of the compiler, to be left out of its messages."""
    kernel_options: tuple[str, ...]
    """What it takes besides to keep a kernel from what it may not do."""
    reads_hip: bool
    """Whether it has a front end of HIP, and what that needs."""
    own_symbols: frozenset[str]
    """Functions of the compiler's support library, which is linked into what needs them."""

    def compile(self, source: str, output: str, options: Sequence[str], cwd: Path) -> Completed:
        """Compile one C++ file, or assemble one whose name ends with ``.S``."""
        ...

    def preprocess(self, source: str, output: str, options: Sequence[str], cwd: Path) -> Completed:
        """Write what ``compile`` with the same ``options`` reads once macros are expanded."""
        ...

    def intermediate(
        self, source: str, output: str, options: Sequence[str], cwd: Path
    ) -> Completed:
        """Write LLVM's code of what ``compile`` reads, not optimised yet, with its lines."""
        ...

    def read_hip(
        self, source: str, options: Sequence[str], cwd: Path, *, device: str = ""
    ) -> Completed:
        """Read a file as HIP, as the host does: nothing is said if it is sound.

        Or else as the device, which alone follows what kernels call: the code of that is written
        to ``device``, as by ``intermediate``.
        """
        ...

    def link_library(self, link: Link, cwd: Path) -> Completed:
        """Link a shared library. What HIP's runtime provides is found when it is loaded."""
        ...

    def link_program(self, link: Link, cwd: Path) -> Completed:
        """Link a program."""
        ...


def host_machine() -> Machine:
    """The processor that this process runs on."""
    name = platform.machine()
    if name in {"x86_64", "amd64"}:
        return Machine.X86_64
    if name in {"aarch64", "arm64"}:
        return Machine.AARCH64
    raise ToolchainFault(f"the host needs x86-64 or aarch64, not {name}")


def write_version_script(exports: Sequence[str], cwd: Path) -> str:
    """The linker's option that keeps every other name to the library itself.

    Names that are not ASCII stay there, too: the linker cannot read them.
    """
    names = "".join(f"{name}; " for name in sorted(exports) if name.isascii())
    global_part = f"global: {names}" if names else ""
    (cwd / "exports.map").write_text(f"{{ {global_part}local: *; }};\n")
    return "--version-script=exports.map"


def only_these(
    directories: Mapping[str, Path], options: Sequence[str], cwd: Path, *, trusted: bool = False
) -> list[str]:
    """Options by which clang finds files in ``directories``, where ``options`` have it look, and in
    ``cwd``; nowhere else is anything, except for a ``trusted`` source.

    Whatever asks for a file, by inclusion, ``__has_include``, ``#embed`` or a pragma, gets the same
    answer on every machine. ``directories`` are by their names for clang.
    """
    searched = [option.removeprefix("-I") for option in options if option.startswith("-I/")]
    searched += [b for a, b in pairwise(options) if a == "-isystem"]
    real = {path: path for path in searched if not path.startswith(tuple(directories))}
    seen = {str(cwd): str(cwd), **real, **{name: str(path) for name, path in directories.items()}}
    roots = [
        {"type": "directory-remap", "name": name, "external-contents": path}
        for name, path in sorted(seen.items())
    ]
    where = "fallthrough" if trusted else "redirect-only"
    overlay = {"version": 0, "redirecting-with": where, "use-external-names": False}
    written = cwd / f"{_OVERLAY}.{get_ident()}"
    written.write_text(json.dumps({**overlay, "overlay-relative": False, "roots": roots}))
    return ["-ivfsoverlay", written.name]


def run_tool(command: Sequence[str], cwd: Path) -> Completed:
    """Run a tool in a bare environment. Raises ToolchainFault, ToolDied among them.

    What a compiler leaves when it breaks goes where the rest of the build is, and with it. What it
    says goes to files, which have their bounds as those that it makes: a source can have it say
    more than memory holds.
    """
    try:
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            code = subprocess.run(
                command,
                cwd=cwd,
                env={
                    "LC_ALL": "C",
                    "PATH": "/usr/bin:/bin",
                    "TMPDIR": str(cwd.absolute()),
                    "SOURCE_DATE_EPOCH": _EPOCH,
                    "TZ": "UTC",
                },
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                check=False,
            ).returncode
            said, told = _read(output), _read(errors)
    except OSError as error:
        raise ToolchainFault(f"cannot run {command[0]}: {error.strerror}") from error
    if code < 0:
        raise ToolDied(command[0], -code)
    if died := _DIED.search(told):
        raise ToolDied(command[0], int(died[1] or 0) % 128)
    return Completed(code, (told + said).decode("utf-8", "replace"))


def _read(file: IO[bytes]) -> bytes:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    first = file.read(_MOST_SAID)
    if size <= len(first):
        return first
    file.seek(-_LAST_SAID, os.SEEK_END)
    left_out = f"\n... of {size} bytes some are left out\n"
    return first + left_out.encode() + file.read(_LAST_SAID)
