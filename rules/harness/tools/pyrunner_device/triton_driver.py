"""Prepares Triton in the process from which runners are forked."""

from __future__ import annotations

import contextlib
import importlib
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from base.device_platform import DevicePlatform, device_platform

from pyrunner_device import binaries

_FAILURES = (OSError, RuntimeError, AssertionError, ImportError, subprocess.SubprocessError)
_read: set[str] = set()


def build(platform: str, kernels: str) -> None:
    """Compile and load once what every runner would otherwise compile and load again.

    That is Triton's module for the device, and the code that launches the kernels in the file
    ``kernels`` ("" for none). A second call does nothing. They are linked with the driver, but
    nothing calls it before a runner does. If something cannot be built, the first kernel in a
    runner reports why.
    """
    used = device_platform(platform)
    work = [*_module(used), *_launchers(used, kernels)]
    if work:
        with ThreadPoolExecutor(len(work)) as pool:  # they wait for compilers and hash files
            for done in [pool.submit(_tried, each) for each in work]:
                done.result()


def _tried(work: Callable[[], object]) -> None:
    with contextlib.suppress(*_FAILURES):
        work()


def _module(used: DevicePlatform) -> Iterator[Callable[[], object]]:
    module, name = used.triton_utilities
    utilities: Any = getattr(importlib.import_module(module), name)
    if not hasattr(utilities, "instance"):
        yield importlib.import_module("triton.runtime.cache").triton_key  # it hashes 400 MB, once
        yield partial(_instantiate, utilities)


def _instantiate(utilities: Any) -> None:
    try:
        utilities()
    except _FAILURES:
        del utilities.instance
    else:
        utilities.__init__ = _built


def _built(_: object) -> None:
    """Accept the arguments; the one instance exists and has loaded its module."""


def _launchers(used: DevicePlatform, kernels: str) -> Iterator[Callable[[], object]]:
    """Yield a task for each launcher: compiling one takes 0.2 s, and most kernels share a few."""
    if not kernels or kernels in _read or used.triton_launcher is None:
        return
    _read.add(kernels)
    _remember(importlib.import_module(used.triton_utilities[0]))
    for types in binaries.launchers(kernels):
        yield partial(used.triton_launcher, types)


def _remember(module: Any) -> None:
    """Make Triton load equal source once, in this process and all that are forked from it."""
    compiles = module.compile_module_from_src
    if hasattr(compiles, "made"):
        return
    made: dict[str, object] = {}

    def compile_once(src: str, **how: Any) -> object:
        if src not in made:
            made[src] = compiles(src=src, **how)
        return made[src]

    compile_once.made = made  # type: ignore[attr-defined]
    module.compile_module_from_src = compile_once
