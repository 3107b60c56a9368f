"""In the sandbox: makes a task's call on tensors without data, where launches only compile."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from base import layouts, shapes
from base.places import ADAPTER, MODULES
from base.program import Argument, Config
from pyrunner.module import load_module
from pyrunner_call.call_tree import CANDIDATE, Boundary, Functions
from terms.dtypes import DTYPES
from torch import Tensor
from torch.overrides import TorchFunctionMode

_META = torch.device("meta")
_IDLE = ("synchronize", "device", "stream", "Stream", "Event", "current_stream")
"""What a module may ask of PyTorch about the device that changes no launch."""


def call_all(path: Path, spec: Mapping[str, Any], device: str) -> None:
    """Make the call for each config, as a runner does.

    ``device`` is the type of the device that the module finds; its tensors are on ``meta``. A
    config that fails does not keep others from being tried. Raises what the first one has raised.
    """
    errors = []
    with _without_data(device):
        functions = _functions(path, spec)
        for config in map(_config, spec["configs"]):
            try:
                _call(functions, spec["signature"], config)
            except Exception as error:  # noqa: BLE001 - whatever the module raises
                errors.append(error)
    if errors:
        raise errors[0]


def _functions(path: Path, spec: Mapping[str, Any]) -> Functions:
    said = json.loads(spec["call"])
    if Path(MODULES).is_dir():
        sys.path.insert(0, MODULES)
    candidate = sys.modules[CANDIDATE] = load_module(str(path))
    adapter = load_module(ADAPTER, "adapter") if Path(ADAPTER).is_file() else None
    names, state_by = tuple(said["names"]), said["state_by"]
    return Functions(candidate, adapter, said["targets"], said["node"], names, state_by)


def _call(functions: Functions, signature: Mapping[str, Any], config: Config) -> None:
    constants = {**config.scalars, **config.dims, **dict.fromkeys(config.absent)}
    state = dict(_tensors(signature.get("state", ()), config))
    boundary = Boundary(functions, constants, config.dtype, state, _META)
    given = dict(_tensors((*signature["inputs"], *signature["outputs"]), config))
    arguments, keywords = boundary.operands(given)
    with torch.no_grad():
        boundary.function(*arguments, **keywords)


def _tensors(declared: Any, config: Config) -> Iterator[tuple[str, Any]]:
    for name, dtype, shape, *more in declared:
        said: Mapping[str, Any] = more[0] if more else {}
        if name in config.absent:
            continue
        count = said.get("count", "")
        sizes = ((count,) if count else ()) + tuple(shape)
        argument = Argument(name, dtype, sizes, bool(count), layout=said.get("layout", ""))
        made = _tensor(argument, config)
        yield name, list(made.unbind(0)) if count else made


def _tensor(argument: Argument, config: Config) -> Tensor:
    dtype = DTYPES[shapes.dtype_name(argument, config)]
    kind: torch.dtype = getattr(torch, dtype.given_as or dtype.torch_name)
    shape = shapes.shape(argument, config.dims)
    if argument.layout == layouts.DENSE:
        argument = replace(argument, layout="")
    steps = layouts.strides(argument, config.dims)
    return torch.empty_strided(shape, steps, dtype=kind, device=_META)


def _config(value: Mapping[str, Any]) -> Config:
    absent = tuple(value.get("absent", ()))
    return Config(value["name"], value["dims"], value["dtype"], value["scalars"], absent)


@contextmanager
def _without_data(device: str) -> Iterator[None]:
    """What a module asks for on the device, or makes on no named one, is made without data."""
    there = property(lambda _: True)
    module = torch.get_device_module(device)
    with ExitStack() as stack:
        stack.enter_context(mock.patch.object(Tensor, f"is_{device}", there, create=True))
        for name in _IDLE:
            stack.enter_context(mock.patch.object(module, name))
        stack.enter_context(torch.device(_META))
        stack.enter_context(_Elsewhere(device))
        yield


class _Elsewhere(TorchFunctionMode):
    def __init__(self, device: str) -> None:
        super().__init__()
        self._device = device

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The call with ``meta`` in the place of the device; no generators without data."""
        del types
        keywords = dict(kwargs or {})
        if "device" in keywords:
            keywords["device"] = _META
        keywords.pop("generator", None)
        name = getattr(func, "__name__", "")
        if name in {self._device, "cpu"} and args and isinstance(args[0], Tensor):
            return args[0]
        if name == "to":
            args = tuple(_META if self._is_named(value) else value for value in args)
        return func(*args, **keywords)

    def _is_named(self, value: Any) -> bool:
        return isinstance(value, str | torch.device) and str(value).startswith(
            (self._device, "cpu")
        )
