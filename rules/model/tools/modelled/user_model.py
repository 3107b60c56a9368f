"""The user's model: a Python file with ``build`` and ``inputs``."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

_LONGEST = 700
_TINY, _CALLS = 64, 20  # of so few values, dropout may leave two equal by chance; so many do not

SEED = 20260801
"""Of the weights and the arguments with which a model is looked at."""


class ModelError(Exception):
    """A model that cannot be taken apart: ``reason`` is a class of such models."""

    def __init__(self, reason: str, why: str) -> None:
        super().__init__(f"{reason}: {why}")
        self.reason = reason
        self.why = why


@dataclass(frozen=True)
class UserModel:
    """A model with one call's arguments.

    Attributes:
        module: with random weights, on ``device``.
        draw: the arguments of a call under a seed.
        device: of PyTorch, such as ``cpu``.
        code: the module of its file, which may have ``loss`` and ``optimiser``.
    """

    module: torch.nn.Module
    draw: Callable[[int], tuple[Tensor, ...]]
    device: str
    code: Any = None

    @property
    def arguments(self) -> tuple[Tensor, ...]:
        """One call's arguments."""
        return self.draw(SEED)

    def call(self, arguments: Sequence[Tensor]) -> list[Tensor]:
        """The tensors that the model returns. Raises ModelError."""
        with torch.no_grad():
            return results(self.module(*arguments))


def device_of(module: str) -> str:
    """PyTorch's device that a platform's ``module`` names; the CPU if it names none."""
    if not module:
        return "cpu"
    device: str = importlib.import_module(module).PLATFORM.torch_device
    return device


def load(path: Path, device: str = "cpu") -> UserModel:
    """The model in a file. Raises ModelError."""
    specification = importlib.util.spec_from_file_location("kabuild_user_model", path)
    assert specification is not None
    assert specification.loader is not None
    code = importlib.util.module_from_spec(specification)
    sys.modules[code.__name__] = code
    try:
        specification.loader.exec_module(code)
        build, inputs = _function(code, "build"), _function(code, "inputs")
        torch.manual_seed(SEED)
        module = build()
    except ModuleNotFoundError as error:
        what = f"it imports '{error.name}', which the pinned Python does not have"
        raise ModelError("NEEDS_PACKAGE", what) from None
    except ModelError:
        raise
    except Exception as error:
        raise ModelError("DOES_NOT_LOAD", described(error, str(code.__file__))) from error
    if not isinstance(module, torch.nn.Module):
        what = f"build() returned a {type(module).__name__}, expected a torch.nn.Module"
        raise ModelError("NO_MODULE", what)
    model = UserModel(
        module.to(device), lambda seed: _arguments(inputs, seed, device), device, code
    )
    found = _check(model)
    _check_logits(getattr(code, "LOGITS", None), found)
    if hasattr(code, "loss"):
        _check_loss(_function(code, "loss"), model)
    return model


def results(value: Any) -> list[Tensor]:
    """The tensors of a result: one, or a tuple or list of them. Raises ModelError."""
    found = list(value) if isinstance(value, list | tuple) else [value]
    for item in found:
        if not isinstance(item, Tensor):
            what = f"a result is of type {type(item).__name__}; return a tensor or a tuple of them"
            raise ModelError("RESULT_NOT_TENSORS", what)
    return found


def described(error: BaseException, file: Path | str = "") -> str:
    """The first line of an error's message, without addresses, and the line of ``file``."""
    text, lines = (
        str(error),
        [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename == str(file)
        ],
    )
    if isinstance(error, SyntaxError) and error.filename == str(file):
        text, lines = error.msg, [error.lineno]
    first = f"{type(error).__name__}: {text.strip()}".partition("\n")[0]
    shown = re.sub(r"0x[0-9a-f]+", "0x...", first)[:_LONGEST]
    return f"line {lines[-1]}: {shown}" if lines else shown


def _function(code: Any, name: str) -> Callable[..., Any]:
    found = getattr(code, name, None)
    if not callable(found):
        raise ModelError("NO_ENTRY", f"the file defines no function {name}()")
    function: Callable[..., Any] = found
    return function


def _arguments(inputs: Callable[..., Any], seed: int, device: str) -> tuple[Tensor, ...]:
    found = inputs(torch.Generator().manual_seed(seed))
    if not isinstance(found, list | tuple) or not all(isinstance(x, Tensor) for x in found):
        raise ModelError("ARGUMENT_NOT_TENSOR", "inputs(generator) must return a tuple of tensors")
    return tuple(tensor.to(device) for tensor in found)


def _check_logits(index: Any, found: Sequence[Tensor]) -> None:
    """Refuse an index of no result, or of one without tokens. Raises ModelError."""
    if index is None:
        return
    if type(index) is not int or not 0 <= index < len(found):
        what = f"LOGITS is {index!r:.50}, expected the number of a result, below {len(found)}"
        raise ModelError("BAD_LOGITS", what)
    if not found[index].is_floating_point() or found[index].dim() < 2:
        what = f"result {index} is a {found[index].dtype} with {found[index].dim()} axes"
        raise ModelError("BAD_LOGITS", f"{what}, expected floats with at least two axes")


def _check_loss(loss: Callable[..., Any], model: UserModel) -> None:
    """Refuse a loss that is not a number, or that no weight can lower. Raises ModelError."""
    arguments = model.arguments
    others = model.arguments
    try:
        found = loss(model.module(*arguments), *arguments)
        again = loss(model.module(*others), *others)
    except Exception as error:
        raise ModelError("BAD_LOSS", described(error, model.code.__file__)) from error
    if not isinstance(found, Tensor) or found.dim() or not found.is_floating_point():
        kind = (
            f"{found.dtype} with {found.dim()} axes" if isinstance(found, Tensor) else type(found)
        )
        raise ModelError("BAD_LOSS", f"loss() returned {kind}, expected a tensor of one float")
    if not found.requires_grad:
        raise ModelError("BAD_LOSS", "loss() depends on no weight that is trained")
    if not found.isfinite():
        raise ModelError("BAD_LOSS", f"loss() returned {found.item()}, expected a finite number")
    drawn = zip(model.arguments, arguments, strict=True)
    if not all(torch.equal(one, other) for one, other in drawn):
        raise ModelError("BAD_LOSS", "loss() changes the model's arguments")
    if not torch.allclose(found.double(), again.double(), rtol=1e-5, atol=1e-6):
        raise ModelError("BAD_LOSS", "equal calls of loss() differ, as with random numbers in it")


def _check(model: UserModel) -> list[Tensor]:
    """What a call returns. Refuse a model that fails, or whose equal calls differ.

    Raises ModelError.
    """
    try:
        arguments = model.arguments
        before = [tensor.clone() for tensor in arguments]
        first, again = model.call(arguments), model.call(arguments)
        more = _CALLS if sum(tensor.numel() for tensor in first) < _TINY else 0
        others = [again, *(model.call(arguments) for _ in range(more))]
    except ModelError:
        raise
    except Exception as error:
        raise ModelError("DOES_NOT_RUN", described(error, model.code.__file__)) from error
    if not all(torch.equal(one, other) for one, other in zip(before, arguments, strict=True)):
        raise ModelError("CHANGES_ARGUMENTS", "a call changes its arguments")
    alike = (
        torch.allclose(one.double(), other.double(), rtol=1e-5, atol=1e-6, equal_nan=True)
        for again in others
        for one, other in zip(first, again, strict=True)
    )
    if not all(alike):
        what = "equal calls differ, as with dropout; build() should return the module in eval mode"
        raise ModelError("NOT_REPEATABLE", what)
    return first
