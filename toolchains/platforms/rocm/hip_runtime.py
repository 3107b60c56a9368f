"""AMD's HIP runtime, for those who ask what this machine can do.

It is asked through hip-python, or by its C functions where that is not installed. Builds never load
it: in their own process it would use the devices that they watch. Never run on AMD's hardware; the
tests have a library that stands in.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kabuild.platform import Library, find_library

LIBRARIES = ("libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5")
PLACES = ("/run/opengl-driver/lib", "/opt/rocm/lib")
"""Where NixOS and AMD's installer put it, which the loader may not know."""

_NO_DEVICE = 100
_DEVELOPMENT_NAME = "lib/libamdhip64.so"
_ROOT = "ROCM_PATH"


@dataclass(frozen=True)
class HipRuntime:
    """What the runtime says of itself.

    Attributes:
        version: such as ``6.3.42134``.
        devices: how many it sees.
        problem: why it sees none; empty if it sees some.
    """

    version: str
    devices: int
    problem: str = ""


def find_hip() -> Library | None:
    """The newest runtime that this machine has."""
    found = (find_library(name, places=PLACES) for name in LIBRARIES)
    return next(filter(None, found), None)


def file_version(library: Library) -> str:
    """The version in the name of its file, without loading it: ``6.3.60300``."""
    return Path(library.path).resolve().name.partition(".so.")[2]


def ask(library: Library) -> HipRuntime:
    """Load the runtime and ask. Raises OSError if that cannot be done.

    hip-python keeps the first runtime for as long as the process lives.
    """
    loaded = ctypes.CDLL(library.path)
    try:
        hip = importlib.import_module("hip").hip
    except ImportError:
        hip = None
    try:
        if hip is None:
            return _answer(loaded)
        with _where_hip_python_looks(library):
            return _answer_of(hip)
    except (AttributeError, RuntimeError) as error:  # one of the functions is not in the library
        raise OSError(str(error)) from None


@contextmanager
def _where_hip_python_looks(library: Library) -> Iterator[None]:
    """A ROCm for hip-python, which opens the runtime by its development name alone.

    An installation without ROCm's development packages has no file of that name. What is opened
    through the link is the library that is already loaded from its own place, where it finds what
    it needs itself.
    """
    before = os.environ.get(_ROOT)
    with tempfile.TemporaryDirectory(prefix="kabuild-rocm-") as root:
        link = Path(root, _DEVELOPMENT_NAME)
        link.parent.mkdir()
        link.symlink_to(Path(library.path).resolve())
        os.environ[_ROOT] = root
        try:
            yield
        finally:
            if before is None:
                del os.environ[_ROOT]
            else:
                os.environ[_ROOT] = before


def _answer_of(hip: Any) -> HipRuntime:
    """By hip-python, whose functions return a status and what they found."""
    _, number = hip.hipRuntimeGetVersion()
    status, count = hip.hipGetDeviceCount()
    good = status == hip.hipError_t.hipSuccess
    problem = "" if good and count else (hip.hipError_t.hipErrorNoDevice if good else status).name
    return HipRuntime(_version(number), 0 if problem else count, problem)


def _answer(loaded: ctypes.CDLL) -> HipRuntime:
    version, count = ctypes.c_int(), ctypes.c_int()
    loaded.hipRuntimeGetVersion(ctypes.byref(version))
    status = int(loaded.hipGetDeviceCount(ctypes.byref(count)))
    if status == 0 and count.value:
        return HipRuntime(_version(version.value), count.value)
    loaded.hipGetErrorString.restype = ctypes.c_char_p
    said = loaded.hipGetErrorString(ctypes.c_int(status or _NO_DEVICE))
    return HipRuntime(_version(version.value), 0, said.decode(errors="replace"))


def _version(number: int) -> str:
    return f"{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"
