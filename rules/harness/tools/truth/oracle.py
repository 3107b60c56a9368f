"""The truth about a task: its inputs, and its outputs in double precision."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from base import shapes
from base.dtypes import torch_dtype
from base.program import Argument, Config, Signature
from torch import Generator, Tensor

from truth import distributions

Tensors = Mapping[str, Tensor]
_PERTURBATIONS = 2


class TaskFault(Exception):  # noqa: N818 (the task's fault, beside the candidate's and machine's)
    """The task is broken: its ``reference.py`` fails or does not do what it declares."""


class Oracle:
    """A task's ``reference.py``, trusted but checked.

    ``inputs(config, generator)`` draws inputs, ``reference(**tensors, **scalars, **dims)``
    computes outputs in the precision of what it is given, and an optional
    ``check(inputs, outputs, expected)`` says in words what is wrong with outputs for which
    elementwise comparison means nothing. ``cdf(outputs, **tensors, **scalars, **dims)`` says of
    sampled outputs how probable each value, or a smaller one, is.
    """

    def __init__(self, path: str, signature: Signature) -> None:
        self._signature = signature
        self._module = _load(Path(path))
        self._inputs = self._function("inputs")
        self._reference = self._function("reference")
        self._check: Callable[..., Any] | None = getattr(self._module, "check", None)
        self._cdf: Callable[..., Any] | None = getattr(self._module, "cdf", None)

    @property
    def structured(self) -> bool:
        """Whether the task has a ``check`` of its own."""
        return self._check is not None

    @property
    def distributed(self) -> bool:
        """Whether the task says how its outputs are distributed."""
        return callable(self._cdf)

    def inputs(
        self, config: Config, generator: Generator, distribution: str = distributions.DEFAULT
    ) -> dict[str, Tensor]:
        """Fresh inputs, contiguous and as declared.

        A distribution that is none of ours is the task's: it is passed on to ``inputs``.
        Raises TaskFault.
        """
        ours = distribution in {*distributions.NAMES, *distributions.ON_REQUEST}
        request = {
            **config.dims,
            **config.scalars,
            "dtype": torch_dtype(config.dtype),
            "distribution": distributions.DEFAULT if ours else distribution,
        }
        drawn = _call("inputs", self._inputs, request, generator)
        declared = self._signature.inputs
        tensors = _validated("inputs", drawn, declared, config)
        for argument in declared:
            wanted = torch_dtype(shapes.dtype_name(argument, config))
            if tensors[argument.name].dtype != wanted:
                raise TaskFault(
                    f"inputs: '{argument.name}' is {_dtype(tensors[argument.name])}, "
                    f"declared {str(wanted).rpartition('.')[2]}"
                )
        changed = distributions.apply(distribution, tensors, generator)
        here = torch.get_default_device()
        return {name: tensor.to(here).contiguous() for name, tensor in changed.items()}

    def expected(self, config: Config, inputs: Tensors) -> dict[str, Tensor]:
        """The outputs for ``inputs``, floating ones in double precision. Raises TaskFault."""
        tensors = self.compute(config, {name: _upcast(tensor) for name, tensor in inputs.items()})
        for argument in self._signature.outputs:
            wanted = torch_dtype(shapes.dtype_name(argument, config))
            found = tensors[argument.name]
            if found.is_floating_point() and not wanted.is_floating_point:
                raise TaskFault(f"reference: '{argument.name}' is floating, declared {wanted}")
        return {name: _upcast(tensor) for name, tensor in tensors.items()}

    def compute(self, config: Config, inputs: Tensors) -> dict[str, Tensor]:
        """What ``reference`` makes of ``inputs`` in their own precision. Raises TaskFault."""
        given = {name: tensor.clone() for name, tensor in inputs.items()}
        with torch.no_grad():
            made = _call("reference", self._reference, **given, **config.scalars, **config.dims)
        return _validated("reference", made, self._signature.outputs, config)

    def sensitivity(self, config: Config, inputs: Tensors, expected: Tensors) -> dict[str, Tensor]:
        """By how much each output moves when every input moves by one rounding of float32.

        A result that is exact for inputs so near to the given ones is no error of a kernel
        that computes in single precision. Elements with no finite movement count as 0.
        """
        generator = torch.Generator(torch.get_default_device()).manual_seed(0)
        moved = {name: torch.zeros(value.shape).double() for name, value in expected.items()}
        for _ in range(_PERTURBATIONS):
            near = {name: _nudged(tensor, generator) for name, tensor in inputs.items()}
            other = self.expected(config, near)
            for name, value in expected.items():
                difference = (other[name].double() - value.double()).abs()
                finite = torch.nan_to_num(difference, nan=0.0, posinf=0.0)
                moved[name] = torch.maximum(moved[name], finite)
        return moved

    def check(self, config: Config, inputs: Tensors, outputs: Tensors, expected: Tensors) -> str:
        """What the task's own check finds wrong; empty when nothing. Raises TaskFault.

        A check may stumble over garbage in the outputs, which is then the finding. It is the
        task's fault where the check stumbles over the oracle's own outputs too.
        """
        assert self._check is not None
        copies = [{name: t.clone() for name, t in d.items()} for d in (inputs, outputs, expected)]
        try:
            said = self._check(*copies)
        except Exception as error:  # noqa: BLE001 - the task's code, on hostile values
            self._check_own(config, inputs, expected)
            return f"the outputs cannot be checked: {type(error).__name__}: {error}"
        if said is not None and not isinstance(said, str):
            raise TaskFault(f"check: returned {said!r}, neither None nor text")
        return said or ""

    def cdf(self, config: Config, inputs: Tensors, outputs: Tensors) -> dict[str, Tensor]:
        """How probable each element of the given outputs is, or a smaller value in its place.

        The outputs are doubles, or 64-bit integers, and may hold any values. NaN says that there
        is no such value. Raises TaskFault.
        """
        assert self._cdf is not None
        given = {name: _upcast(tensor).clone() for name, tensor in inputs.items()}
        copies = {name: tensor.clone() for name, tensor in outputs.items()}
        with torch.no_grad():
            made = _call("cdf", self._cdf, copies, **given, **config.scalars, **config.dims)
        found: dict[str, Tensor] = {}
        for name, tensor in outputs.items():
            value = made.get(name) if isinstance(made, dict) else None
            if not isinstance(value, Tensor) or value.shape != tensor.shape:
                raise TaskFault(f"cdf: returned no tensor '{name}' of {size(tensor.shape)}")
            found[name] = value.double()
        return found

    def _check_own(self, config: Config, inputs: Tensors, expected: Tensors) -> None:
        own = {}
        for argument in self._signature.outputs:
            wanted = torch_dtype(shapes.dtype_name(argument, config))
            own[argument.name] = expected[argument.name].to(wanted)
        assert self._check is not None
        _call("check", self._check, dict(inputs), own, dict(expected))

    def _function(self, name: str) -> Callable[..., Any]:
        function = getattr(self._module, name, None)
        if not callable(function):
            raise TaskFault(f"reference.py has no function '{name}'")
        return function  # type: ignore[no-any-return]


def _load(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location("kabuild_task_reference", path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    _call("import", specification.loader.exec_module, module)
    return module


def _call(what: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    try:
        return function(*arguments, **named)
    except MemoryError:
        raise
    except Exception as error:
        raise TaskFault(f"{what}: {type(error).__name__}: {error}") from error


def _validated(
    what: str, made: Any, declared: tuple[Argument, ...], config: Config
) -> dict[str, Tensor]:
    if not isinstance(made, dict):
        raise TaskFault(f"{what}: returned {type(made).__name__}, not a dict of tensors")
    names = [argument.name for argument in declared]
    if set(made) != set(names):
        raise TaskFault(f"{what}: returned {sorted(map(str, made))}, declared {sorted(names)}")
    for argument in declared:
        tensor, shape = made[argument.name], shapes.shape(argument, config.dims)
        if not isinstance(tensor, Tensor):
            raise TaskFault(f"{what}: '{argument.name}' is {type(tensor).__name__}, no tensor")
        if tuple(tensor.shape) != shape:
            raise TaskFault(
                f"{what}: '{argument.name}' is {size(tensor.shape)}, declared {size(shape)} "
                f"for {config.name}"
            )
    return {name: made[name] for name in names}


def size(shape: tuple[int, ...] | torch.Size) -> str:
    """A shape for people: ``64x257``."""
    return "x".join(map(str, shape)) or "scalar"


def _upcast(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).rpartition(".")[2]


def _nudged(tensor: Tensor, generator: Generator) -> Tensor:
    """Every element up or down by one rounding, in the precision that kernels compute in."""
    if not tensor.is_floating_point():
        return tensor
    computed = torch.float64 if tensor.dtype == torch.float64 else torch.float32
    limits = torch.finfo(computed)
    up = torch.randint(0, 2, tensor.shape, generator=generator).double() * 2.0 - 1.0
    exact = tensor.double()
    return exact + up * (exact.abs() * limits.eps + limits.tiny)
