"""Prepares Triton in the process from which runners are forked."""

from __future__ import annotations

import importlib
import subprocess
from typing import Any

from base.device_platform import device_platform

_FAILURES = (OSError, RuntimeError, AssertionError, ImportError, subprocess.SubprocessError)


def build(platform: str) -> None:
    """Compile and load Triton's module for the device; a second call does nothing.

    It takes a second, and every runner would pay it. The module is linked with the driver,
    which nothing calls before a runner does. Where it cannot be built, the first kernel in a
    runner says why.
    """
    module, name = device_platform(platform).triton_utilities
    utilities: Any = getattr(importlib.import_module(module), name)
    if hasattr(utilities, "instance"):
        return
    importlib.import_module("triton.runtime.cache").triton_key()  # kept; it reads 400 MB
    try:
        utilities()
    except _FAILURES:
        del utilities.instance
    else:
        utilities.__init__ = _built


def _built(_: object) -> None:
    """The one instance is there, and so is what it has loaded."""
