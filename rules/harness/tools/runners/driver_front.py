"""Puts the launch filter in front of the device's driver, for runners that are forked later.

The filter has the driver's name, and finds the driver through a link in its own directory. Once
loaded, it changes the driver's symbol table to name its own functions, so it does not matter who
has loaded the driver before. No runner can open the driver's own file. A Python runner inherits
both libraries from the launcher; in the file's place it sees one without code, which Triton links
with. The native runner sees the filter there. It is executed, so its loader opens the driver
through a descriptor that is then closed.

A Python module such as PyTorch may bring its own driver. Then Python runners use that driver, and
the native runner uses the machine's.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import shutil
import struct
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from base.device_platform import device_platform
from base.program import Program

from runners.protocol import DRIVER_FD

BEHIND = "libkabuild-driver.so"
FOLDER = "/runner/driver"
_PATH_BYTES = 4096
_HEADER = struct.Struct("<40xQ10xHHxx")  # of an ELF file: place, size and number of sections
_SECTION = struct.Struct("<IIQQQQIIQQ")
# Of sections, SHT_: STRTAB, HASH, DYNAMIC, DYNSYM, GNU_HASH, GNU_VERDEF, GNU_VERNEED, GNU_VERSYM.
_LINKED = (3, 5, 6, 11, 0x6FFFFFF6, 0x6FFFFFFD, 0x6FFFFFFE, 0x6FFFFFFF)


@dataclass(frozen=True)
class Front:
    """The filter, ready for runners.

    Attributes:
        library: the filter, beside a link to the driver.
        native: a directory with the same file and a link to the runner's descriptor.
        symbols: the driver without its code.
        driver: the driver's own file, with links resolved.
    """

    library: str
    native: str
    symbols: str
    driver: str

    def place_of_driver(self, program: Program) -> str:
        """The file that a runner of ``program`` sees instead of the driver."""
        return self.library if program.abi == "hip" else self.symbols

    @property
    def folder(self) -> str:
        """The driver's directory, which may also contain libraries that it is linked with."""
        return os.path.dirname(self.driver)  # noqa: PTH120 - a path of the loader's

    def open_driver(self) -> int:
        """Open the driver for a native runner."""
        return os.open(self.driver, os.O_RDONLY | os.O_CLOEXEC)


def front_of(program: Program) -> Front | None:
    """The launch filter in front of the driver in runners of ``program``; None if there is none.

    A Python program's filter is loaded into this process, which forks its runners. Raises OSError
    if there is no driver.
    """
    if not program.launch_filter:
        return None
    driver = device_platform(program.platform).driver
    module = "" if program.abi == "hip" else driver.brought_by
    front = _make(program.launch_filter, driver.names, module)
    if program.abi != "hip":
        _load(front)
    return front


def clean_up() -> None:
    """Remove the files that were made for runners."""
    for folder in _FOLDERS:
        shutil.rmtree(folder, ignore_errors=True)


_FOLDERS: list[Path] = []


@cache
def _make(launch_filter: str, names: tuple[str, ...], module: str) -> Front:
    name, driver = _found_by_loader(names, module)
    folder = Path(tempfile.mkdtemp(prefix="driver-"))
    _FOLDERS.append(folder)
    for kind, behind in (("python", driver), ("native", f"/proc/self/fd/{DRIVER_FD}")):
        (folder / kind).mkdir()
        (folder / kind / BEHIND).symlink_to(behind)
    library = folder / "python" / name
    shutil.copyfile(launch_filter, library)
    (folder / "native" / name).hardlink_to(library)  # one file: the loader loads it once
    symbols = folder / "symbols"
    symbols.mkdir()
    _copy_symbols(Path(driver), symbols / name)
    folder.chmod(0o755)  # runners run as other users
    return Front(str(library), str(folder / "native"), str(symbols / name), driver)


def filter_launches(orders: int, record: int, candidate: str) -> None:
    """Make the filter in this process decide about launches. Raises OSError if it cannot.

    ``orders`` and ``record`` are descriptors of its pages. ``candidate`` is the file whose kernels
    may run; it is not loaded yet.
    """
    (library,) = _LOADED
    error = _LOADED[library].kabuild_filter_launches(orders, record, candidate.encode())
    if error:
        raise OSError(f"the launch filter failed to start: {error}")


_LOADED: dict[str, ctypes.CDLL] = {}


def _load(front: Front) -> None:
    if front.library not in _LOADED:
        # Load it by its own path first: it may look for libraries beside itself, not beside a link.
        driver = ctypes.CDLL(front.driver)
        _LOADED[front.library] = ctypes.CDLL(front.library)
        del driver


def _copy_symbols(driver: Path, copy: Path) -> None:
    """Write only the parts of a library that a linker reads, with holes for the rest."""
    with driver.open("rb") as source, copy.open("wb") as target:
        header = source.read(_HEADER.size)
        start, size, count = _HEADER.unpack(header)
        source.seek(start)
        table = source.read(size * count)
        parts = [(0, len(header)), (start, len(table))]
        for _, kind, _, _, place, length, *_ in _SECTION.iter_unpack(table):
            parts += [(place, length)] if kind in _LINKED else []
        for place, length in parts:
            source.seek(place)
            target.seek(place)
            target.write(source.read(length))


def _found_by_loader(names: tuple[str, ...], module: str) -> tuple[str, str]:
    """The first of these libraries that exists, and its file; the one of ``module`` is tried first.

    Raises OSError if there is none. A child asks the loader, because a process that has loaded the
    driver can no longer put anything in front of it.
    """
    ways: list[tuple[str, Callable[[], object]]] = [
        (name, partial(ctypes.CDLL, name)) for name in names
    ]
    if module:
        ways.insert(0, (names[0], partial(importlib.import_module, module)))
    for name, load in ways:
        found = _answer_of_child(load, name)
        if found:
            return name, found
    raise FileNotFoundError(f"the device's driver, {names[0]}, is not installed")


def _answer_of_child(load: Callable[[], object], name: str) -> str:
    """The library's file as found by a child that runs ``load``; empty if there is none."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            load()
            os.write(write, os.fsencode(_mapped(name)))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        found = os.fsdecode(pipe.read(_PATH_BYTES))
    os.waitpid(child, 0)
    return found


def _mapped(name: str) -> str:
    """The file from which this process has mapped a library."""
    stem = name.partition(".so")[0]
    for line in os.fsdecode(Path("/proc/self/maps").read_bytes()).split("\n"):
        path = line.partition("/")[2]
        if path.rpartition("/")[2].startswith(f"{stem}.so"):
            return f"/{path}"
    raise FileNotFoundError(name)
