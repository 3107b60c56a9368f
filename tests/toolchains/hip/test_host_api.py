"""The host side of HIP, and the names of its errors."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from tests.toolchains.hip.support import Load


@pytest.mark.parametrize("check", ["check_memory", "check_errors", "check_streams", "check_device"])
@pytest.mark.parametrize("wave", [32, 64])
def test_host_api(load: Load, check: str, wave: int) -> None:
    line = load("host_api", wave)(check)
    assert line == 0, f"the expectation at line {line} of the normalised source failed"


@pytest.mark.parametrize(
    ("code", "name", "sentence"),
    [
        (0, "hipSuccess", "no error"),
        (1, "hipErrorInvalidValue", "invalid argument"),
        (9, "hipErrorInvalidConfiguration", "invalid configuration argument"),
        (719, "hipErrorLaunchFailure", "unspecified launch failure"),
        (12345, "hipErrorUnknown", "unknown error"),
    ],
)
def test_names_of_errors(runtime: Path, code: int, name: str, sentence: str) -> None:
    library = ctypes.CDLL(str(runtime))
    library.hipGetErrorName.restype = library.hipGetErrorString.restype = ctypes.c_char_p
    assert library.hipGetErrorName(code).decode() == name
    assert library.hipGetErrorString(code).decode() == sentence
