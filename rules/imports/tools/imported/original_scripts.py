"""A script's own draws, and its own check of a candidate in its own process, as they are.

Nothing of the script is replaced but the module that it loads: what it calls with tensors there is
a candidate, which is given the module's own function, and its kernels run.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from imported.devices import FilledMemory, instead_of_cuda
from imported.functions import placed, sized, tensors
from imported.modules import first_line
from imported.original_functions import Answer, cloned
from imported.script_setting import as_on_a_gpu, salted
from imported.script_stage import DoneError
from imported.scripts import Script
from imported.seeding import seed_all

Told = Mapping[str, Any]
Function = Callable[..., Any]

_PASSED = "passed"


def drawn(script: Script, told: Told, config: Told, seed: int) -> dict[str, Any]:
    """The inputs that the script draws under ``seed``, as they reach the module's function.

    Raises LookupError.
    """
    heard: dict[str, Tensor] = {}

    def listening(function: Function) -> Function:
        def called(*arguments: Any, **named: Any) -> Any:
            values = inspect.signature(function).bind(*arguments, **named).arguments
            heard.update(cloned(tensors(values)))
            raise DoneError

        return called

    try:
        _said(script, sized(told, config), seed, listening)
    except DoneError:
        return {"inputs": {name: heard[name] for name in told["inputs"]}, "state": {}}
    raise LookupError("the script calls no function with tensors")


def checked(script: Script, told: Told, config: Told, seed: int, answer: Answer) -> str:
    """The complaint of the script's check about a candidate; "" if it passes."""
    try:
        return _said(script, sized(told, config), seed, answer)
    except Exception as error:  # noqa: BLE001 - whatever the script raises for such results
        return first_line(error)


def _said(script: Script, sizes: Told, seed: int, candidate: Answer) -> str:
    device = str(torch.get_default_device())
    module = _module(script, device)
    seed_all(seed)
    with as_on_a_gpu(device), salted(), instead_of_cuda(device), FilledMemory():
        return script.said(sizes, _Candidate(module, candidate))


@functools.cache
def _module(script: Script, device: str) -> types.ModuleType:
    return script.module(run=True, device=device)


class _Candidate:
    """The module, with a candidate in the place of each function that is called with tensors."""

    def __init__(self, module: types.ModuleType, candidate: Answer) -> None:
        self._module = module
        self._candidate = candidate

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if not isinstance(value, types.FunctionType):
            return value
        candidate = self._candidate(_kept(value))

        def called(*arguments: Any, **named: Any) -> Any:
            passed = tensors({_PASSED: (arguments, named)})
            return (candidate if passed else value)(*arguments, **named)

        return called


class _Kept:
    """A function; where it had equal arguments before, its results are those it had."""

    def __init__(self, function: Function) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._known: dict[bytes, tuple[Any, dict[str, Tensor]]] = {}

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        values = {_PASSED: (arguments, named)}
        held = tensors(values)
        key = _digest(values)
        if key not in self._known:
            result = self._function(*arguments, **named)
            if not _shared(result, held):
                self._known[key] = cloned(result), cloned(held)
            return result
        result, left = self._known[key]
        for name, tensor in held.items():
            tensor.copy_(left[name])
        return cloned(result)


@functools.cache
def _kept(function: Function) -> _Kept:
    return _Kept(function)


def _shared(result: Any, held: Mapping[str, Tensor]) -> bool:
    """Whether a result lies in an argument's memory."""
    places = {tensor.untyped_storage().data_ptr() for tensor in held.values()}
    found = tensors({_PASSED: result}).values()
    return any(tensor.untyped_storage().data_ptr() in places for tensor in found)


def _digest(values: Mapping[str, Any]) -> bytes:
    held = tensors(values)
    said = {name: f"{t.dtype}{[*t.shape]}{t.stride()}" for name, t in held.items()}
    total = hashlib.blake2b(digest_size=16)
    total.update(repr([placed(value, name, said) for name, value in values.items()]).encode())
    for tensor in held.values():
        content = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        total.update(content.cpu().numpy().tobytes())
    return total.digest()
