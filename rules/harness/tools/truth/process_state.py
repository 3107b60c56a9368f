"""Detects and undoes changes that a task's code makes to the judge's process.

The judge continues in the process where that code ran. A changed default dtype, a replaced
function or a closed file would otherwise break the judge later, which looks like a machine
failure, or change its arithmetic, which looks like a candidate failure. Changes that are easy to
undo are undone; the rest are the task's mistake.
"""

from __future__ import annotations

import contextlib
import dataclasses
import faulthandler
import functools
import gc
import hashlib
import itertools
import json
import json.decoder
import json.encoder
import locale
import math
import mmap
import os
import random
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import torch

_SYS = {
    name: value
    for name, value in vars(sys).items()
    if callable(value) and not name.endswith(("hook", "__"))
}
_TABLE = sys.modules
_C = vars(torch._C)  # noqa: SLF001 - where PyTorch counts its modes
_getcwd = os.getcwd
_get_dtype, _set_dtype = torch.get_default_dtype, torch.set_default_dtype
_get_device, _set_device = torch.get_default_device, torch.set_default_device
_MODULES: Mapping[str, ModuleType] = {
    module.__name__: module
    for module in (
        *(os, os.path, signal, time, json, json.decoder, json.encoder, math, struct, torch),
        *(contextlib, dataclasses, functools, hashlib, itertools, mmap, random, re, select),
        *(socket, subprocess),
    )
}
_LISTS = ("path", "meta_path", "path_hooks")
_SIGNALS = (signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT, signal.SIGTERM)  # that the judge needs
_MISSING = object()
_OURS: dict[str, ModuleType] = {}
_VITAL: dict[int, tuple[int, int]] = {}
_LIMITS: dict[str, int] = {}
_SPARE_FILES = 64
_DATA_BYTES = 8 << 30
"""How much more memory the judge and a task's code may use; an action may use 1.5 times that."""


def hold(*, on_device: bool = False) -> None:
    """Require that all file descriptors open now stay open, and limit memory and files.

    Code that takes too much memory then gets an exception at the line that does. Memory is not
    limited on a device, because its driver maps memory that is not accounted for.
    """
    for path in Path("/proc/self/fd").iterdir():
        if found := _file(int(path.name)):
            _VITAL[int(path.name)] = found
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    _LIMITS["files"] = files - _SPARE_FILES
    if not on_device:
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        most = _data_bytes() + _DATA_BYTES
        resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
        _LIMITS["bytes"] = most - _DATA_BYTES // 4


class Arithmetic:
    """The state that results depend on: working directory, PyTorch's defaults and modes."""

    def __init__(self) -> None:
        self._place = _getcwd()
        self._dtype, self._stack = _get_dtype(), _function_modes()
        self._device = _device_in(self._stack)
        self._modes = _modes()
        self._threads, self._gradient = torch.get_num_threads(), torch.is_grad_enabled()
        self._deterministic = torch.are_deterministic_algorithms_enabled()

    def put_back(self) -> list[str]:
        """Restore the state; return messages on what the task should not have left."""
        found = [*self._put_defaults_back(), *self._put_place_back(), *self._put_modes_back()]
        torch.set_flush_denormal(False)
        torch.set_grad_enabled(self._gradient)
        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)
        if torch.are_deterministic_algorithms_enabled() != self._deterministic:
            _C["_set_deterministic_algorithms"](self._deterministic, warn_only=False)
        return found

    def _put_place_back(self) -> list[str]:
        try:
            here = _getcwd()
        except OSError:
            here = "a directory that is gone"
        if here == self._place:
            return []
        with suppress(OSError):
            os.chdir(self._place)
        return [f"left the working directory at {here}: go back before the end"]

    def _put_defaults_back(self) -> list[str]:
        """Restore PyTorch's defaults; setting some of them also replaces names."""
        found = []
        if (dtype := _get_dtype()) != self._dtype:
            _set_dtype(self._dtype)
            found.append(f"left PyTorch's default dtype at {_short(dtype)}: pass dtype=")
        if _function_modes() == self._stack:
            return found
        device = _get_device()
        if device != self._device:
            _return_to(self._device)
            found.append(f"left PyTorch's default device at {device}: pass device=")
        return found

    def _put_modes_back(self) -> list[str]:
        if torch.is_inference_mode_enabled():
            return ["left PyTorch in inference mode: write 'with torch.inference_mode()'"]
        if (transforms := _C["_functorch"]).peek_interpreter_stack() is not None:
            while transforms.peek_interpreter_stack() is not None:
                transforms.pop_dynamic_layer_stack()
            return ["left a transform of torch.func on: call torch.func's own functions"]
        if _modes() <= self._modes:
            return []
        while _modes() > self._modes:
            _pop_mode()
        return ["left a mode of PyTorch on: enter modes by 'with'"]


class Everything:
    """All other state: names, modules, files, memory, signals, streams and settings."""

    def __init__(self) -> None:
        self._names = {name: vars(module).copy() for name, module in _MODULES.items()}
        self._names["os"].pop("abort")  # each call replaces it and puts it back
        self._tensor = dict(vars(torch.Tensor))
        if not _OURS:  # modules loaded later may be the task's own
            _OURS.update(sys.modules)
        self._lists = [(name, getattr(sys, name), [*getattr(sys, name)]) for name in _LISTS]
        self._streams = sys.stdin, sys.stdout, sys.stderr
        self._deepest = sys.getrecursionlimit()
        self._hooks = sys.excepthook, sys.unraisablehook
        self._handlers = [signal.getsignal(number) for number in _SIGNALS]
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._umask = os.umask(0o77)
        os.umask(self._umask)
        self._locale = locale.setlocale(locale.LC_ALL)
        self._collects = gc.isenabled(), gc.get_threshold()

    def put_back(self) -> tuple[list[str], list[str]]:
        """Restore the state; return messages on what is lost, and on what should not be left."""
        modules = self._put_modules_back()
        lost = [*_lost_files(), *_exhausted()]
        left = [*self._put_names_back(), *modules]
        self._put_settings_back()
        return lost, left

    def _put_names_back(self) -> list[str]:
        found = put_back("sys", _SYS, vars(sys))
        sys.setrecursionlimit(self._deepest)
        for name, module in _MODULES.items():
            found += put_back(name, self._names[name], vars(module))
        return found + self._put_tensor_back()

    def _put_tensor_back(self) -> list[str]:
        """Restore the methods of tensors, most of which belong to a base class."""
        before, after = self._tensor, vars(torch.Tensor)
        if dict(after) == before:
            return []
        above = vars(_C["TensorBase"])
        shadows = {k for k in after.keys() - before.keys() if k in above}
        changed = {k for k in before if after.get(k, _MISSING) is not before[k]}
        stand_ins = {k for k in shadows | changed if _is_of_a_device(k)}
        shadows, changed = shadows - stand_ins, changed - stand_ins
        for key in shadows:
            delattr(torch.Tensor, key)
        for key in changed:
            setattr(torch.Tensor, key, before[key])
        public = sorted(k for k in shadows | changed if not _is_private(k))
        return [f"replaced torch.Tensor.{key}: {_LEAVE}" for key in public]

    def _put_modules_back(self) -> list[str]:
        sys.modules = _TABLE
        now = _TABLE
        lost = []
        if [*map(now.get, _OURS)] != [*_OURS.values()]:
            lost = [k for k, module in _OURS.items() if now.get(k, _MISSING) is not module]
        for name in lost:
            now[name] = _OURS[name]
        for name, held, before in self._lists:
            found = getattr(sys, name, None)
            if not isinstance(found, list) or any(item not in found for item in before):
                held[:] = before
                setattr(sys, name, held)
        return [f"replaced sys.modules['{name}']: {_LEAVE}" for name in lost[:1]]

    def _put_settings_back(self) -> None:
        """Restore settings that a task may change for its own use; nothing is reported."""
        sys.stdin, sys.stdout, sys.stderr = self._streams
        sys.excepthook, sys.unraisablehook = self._hooks
        for number, handler in zip(_SIGNALS, self._handlers, strict=True):
            if handler is not None and signal.getsignal(number) is not handler:
                _set_handler(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        faulthandler.cancel_dump_traceback_later()
        os.umask(self._umask)
        if locale.setlocale(locale.LC_ALL) != self._locale:
            locale.setlocale(locale.LC_ALL, self._locale)
        if any(entry[0] == "error" for entry in warnings.filters):
            warnings.filters[:] = [entry for entry in warnings.filters if entry[0] != "error"]  # type: ignore[index]
        (gc.enable if self._collects[0] else gc.disable)()
        gc.set_threshold(*self._collects[1])
        for timer in (signal.ITIMER_VIRTUAL, signal.ITIMER_PROF):  # their signals end a process
            signal.setitimer(timer, 0.0)


_LEAVE = "leave what others use as it is"


def put_back(label: str, before: Mapping[str, Any], after: MutableMapping[str, Any]) -> list[str]:
    """Restore changed names, with a message for each. New and private names may change."""
    if len(after) == len(before) and after == before:
        return []
    changed = [
        name
        for name, value in before.items()
        if after.get(name, _MISSING) is not value
        and not _is_private(name)
        and not _is_torchs(after.get(name), value)
    ]
    for name in changed:
        after[name] = before[name]
    return [f"replaced {label}.{name}: {_LEAVE}" for name in changed]


def _is_of_a_device(name: str) -> bool:
    """Whether a tensor's method concerns one kind of device; imported tasks replace some."""
    return isinstance(getattr(torch, name.removeprefix("is_"), None), ModuleType)


def _is_torchs(now: Any, before: Any) -> bool:
    """Whether PyTorch has wrapped one of its own functions, as loading its compiler does."""
    if not isinstance(now, FunctionType) or not now.__module__.startswith("torch"):
        return False
    return now.__name__ == getattr(before, "__name__", None)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _lost_files() -> list[str]:
    lost = [number for number, file in _VITAL.items() if _file(number) != file]
    if not lost:
        return []
    return [f"closed file descriptor {lost[0]} of the judge: close only what it opened"]


def _exhausted() -> list[str]:
    """Resources that the code used up although the judge needs them too."""
    if not _LIMITS:
        return []
    try:
        files = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names, not paths
    except OSError:
        files = _LIMITS["files"] + _SPARE_FILES
    if files > _LIMITS["files"]:
        return [f"left {files} files open: close them"]
    if "bytes" in _LIMITS and (held := _data_bytes()) > _LIMITS["bytes"]:
        return [f"left {held >> 30} GiB of memory in use: keep less between calls"]
    return []


def _data_bytes() -> int:
    """The private memory of this process, in bytes."""
    pages = Path("/proc/self/statm").read_text().split()[5]
    return int(pages) * resource.getpagesize()


def _file(number: int) -> tuple[int, int] | None:
    try:
        found = os.fstat(number)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _set_handler(number: int, handler: Any) -> None:
    try:
        signal.signal(number, handler)
    except (ValueError, OSError, TypeError):
        return  # not in the main thread, or not a handler for Python


def _function_modes() -> list[Any]:
    """PyTorch's active function modes, which see every function; its default device is one.

    Two modes are equal only if they are the same object.
    """
    return [_C["_get_function_stack_at"](i) for i in range(_C["_len_torch_function_stack"]())]


def _device_in(stack: list[Any]) -> torch.device:
    """PyTorch's default device under these modes; cached, since asking for it makes a tensor."""
    if not _DEVICE or _DEVICE[0][0] != stack:
        _DEVICE[:] = [(stack, _get_device())]
    return _DEVICE[0][1]


_DEVICE: list[tuple[list[Any], torch.device]] = []


def _modes() -> int:
    """How many PyTorch modes that see every function call are active."""
    return int(_C["_len_torch_function_stack"]() + _C["_len_torch_dispatch_stack"]())


def _pop_mode() -> None:
    if _C["_len_torch_dispatch_stack"]():
        _C["_pop_torch_dispatch_stack"]()
    else:
        _C["_pop_torch_function_stack"]()


def _return_to(device: torch.device) -> None:
    """Make ``device`` the default again. Modes on top of the device's own are removed with it."""
    usual = None if device.type == "cpu" else device
    try:
        _set_device(usual)
    except Exception:  # noqa: BLE001 - whatever a mode of the task's makes of it
        while _C["_len_torch_function_stack"]():
            _C["_pop_torch_function_stack"]()
        _set_device(usual)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).rpartition(".")[2]
