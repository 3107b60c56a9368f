"""The truth about a task: its inputs, and its outputs in double precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

import torch
from base import layouts, shapes
from base.program import Argument, Config, Signature
from base.spec import Spec
from base.tensors import torch_dtype
from terms.dtypes import DTYPES
from terms.policy import DEFAULT, DISTRIBUTIONS
from torch import Generator, Tensor

from truth import distributions, plain_tensors
from truth.precision import (
    Tensors,
    is_coarser,
    move_farther,
    nudged,
    own_doubles,
    single,
    upcast,
)
from truth.rounding import Rounding
from truth.task_code import TaskCode, TaskFault

__all__ = ["Moved", "Oracle", "TaskFault", "Tensors", "size"]

_PERTURBATIONS = 8  # the larger of only two movements is often half of the maximum
_KINDS = {True: "floating-point numbers", False: "integers, or compare '{}' as quantised"}
_ROUNDED = 8  # computations in single precision


class Oracle:
    """A task's ``reference.py``, trusted but checked.

    ``inputs(config, generator)`` draws inputs. ``reference(**tensors, **scalars, **dims)``
    computes outputs in the precision of its arguments. An optional ``state(config, generator)``
    draws the state of a config, which ``inputs`` draws otherwise; ``reference`` gets it as a dict
    ``state``. Inputs that a call changes are among its results. An optional
    ``check(inputs, outputs, expected)``, with the scalars among ``inputs``, says in words what is
    wrong with outputs for which elementwise comparison is meaningless. ``cdf(outputs, **tensors,
    **scalars, **dims)`` gives, for each value of sampled outputs, the probability of that value or
    a smaller one. Of ``quantised`` integers, ``reference`` may return what would be rounded.
    """

    def __init__(
        self,
        path: str,
        signature: Signature,
        *,
        tf32: bool = False,
        quantised: frozenset[str] = frozenset(),
    ) -> None:
        self._signature = signature
        self._quantised = quantised
        self._tf32 = tf32
        self._code = TaskCode(path)
        self._inputs = self._code.function("inputs")
        self._reference = self._code.function("reference")
        self._state = self._code.find("state") if signature.state else None
        self._check = self._code.find("check")
        self._cdf = self._code.find("cdf")

    @classmethod
    def of(cls, spec: Spec) -> Oracle:
        """The oracle of one judging."""
        return cls(spec.reference, spec.signature, tf32=spec.tf32, quantised=spec.quantised)

    def coarse(self, config: Config) -> bool:
        """Whether programs may round inputs of a config to TF32."""
        return self._tf32 and any(
            shapes.dtype_name(argument, config) == "f32"
            for argument in (*self._signature.of(config).inputs, *self._signature.state)
        )

    @property
    def structured(self) -> bool:
        """Whether the task has a ``check`` of its own."""
        return self._check is not None

    @property
    def distributed(self) -> bool:
        """Whether the task declares the distribution of its outputs."""
        return self._cdf is not None

    def inputs(
        self, config: Config, generator: Generator, distribution: str = DEFAULT
    ) -> dict[str, Tensor]:
        """Fresh inputs, contiguous and as declared.

        A distribution that is not one of ours is the task's: it is passed on to ``inputs``.
        Raises TaskFault.
        """
        ours = distribution in {*DISTRIBUTIONS, *distributions.ON_REQUEST}
        request = self._request(config, DEFAULT if ours else distribution)
        drawn = plain_tensors.entries(self._code.call(self._inputs, request, generator))
        if isinstance(drawn, dict) and self._signature.state and self._state is None:
            left_out = {argument.name for argument in self._signature.state}
            drawn = {name: tensor for name, tensor in drawn.items() if name not in left_out}
        declared = self._signature.of(config).inputs
        tensors = self._typed(self._inputs, drawn, declared, config)
        changed = distributions.apply(distribution, tensors, generator)
        return _laid({a.name: _settled(changed[a.name], a, config) for a in declared})

    def state(self, config: Config, generator: Generator) -> dict[str, Tensor]:
        """A new draw of the config's state; empty if the task has none.

        Raises TaskFault.
        """
        declared = self._signature.state
        if not declared:
            return {}
        request = self._request(config, DEFAULT)
        function = self._state or self._inputs
        drawn = plain_tensors.entries(self._code.call(function, request, generator))
        if self._state is None and isinstance(drawn, dict):
            names = {argument.name for argument in declared}
            drawn = {name: tensor for name, tensor in drawn.items() if name in names}
        return _laid(self._typed(function, drawn, declared, config))

    def _request(self, config: Config, distribution: str) -> dict[str, Any]:
        optional = [argument.name for argument in self._signature.inputs if argument.optional]
        return {
            **config.dims,
            **config.scalars,
            **{name: name not in config.absent for name in optional},
            "dtype": torch_dtype(config.dtype),
            "distribution": distribution,
        }

    def _typed(
        self,
        function: Callable[..., Any],
        drawn: Any,
        declared: tuple[Argument, ...],
        config: Config,
    ) -> dict[str, Tensor]:
        """The drawn tensors, in the declared shapes and dtypes. Raises TaskFault."""
        if isinstance(drawn, dict):
            drawn = {name: t for name, t in drawn.items() if name not in config.absent}
        tensors = self._validated(function, drawn, declared, config)
        for argument in declared:
            if DTYPES[shapes.dtype_name(argument, config)].given_as:
                tensors[argument.name] = tensors[argument.name].view(torch.uint8)
        for argument in declared:
            wanted = torch_dtype(shapes.dtype_name(argument, config))
            if tensors[argument.name].dtype != wanted:
                self._code.refuse(
                    function,
                    f"{self._code.name(function)}() returned '{argument.name}' as "
                    f"{_dtype(tensors[argument.name])}, "
                    f"declared {str(wanted).rpartition('.')[2]}",
                )
        return tensors

    def expected(self, config: Config, inputs: Tensors) -> dict[str, Tensor]:
        """The outputs for ``inputs``, floating ones in double precision. Raises TaskFault."""
        return self._exact(config, own_doubles(inputs))

    def _exact(self, config: Config, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """As ``expected``, for inputs in double precision that may be changed."""
        tensors = self._computed(config, inputs)
        for argument in self._signature.results:
            wanted = torch_dtype(shapes.dtype_name(argument, config))
            found = tensors[argument.name]
            of_kind = found.is_floating_point() == wanted.is_floating_point
            if found.is_complex() or not (of_kind or argument.name in self._quantised):
                better = _KINDS[wanted.is_floating_point].format(argument.name)
                self._refuse_dtype(argument, found, wanted, better)
            if is_coarser(found.dtype, wanted):
                self._refuse_dtype(argument, found, wanted, "what doubles give")
        return upcast(tensors)

    def _refuse_dtype(
        self, argument: Argument, found: Tensor, wanted: torch.dtype, better: str
    ) -> NoReturn:
        declared = str(wanted).rpartition(".")[2]
        said = f"reference() returned '{argument.name}' as {_dtype(found)}, declared {declared}"
        self.refuse(f"{said}: return {better}")

    def compute(self, config: Config, inputs: Tensors) -> dict[str, Tensor]:
        """The outputs of ``reference`` in the precision of ``inputs``. Raises TaskFault."""
        return self._computed(config, {name: tensor.clone() for name, tensor in inputs.items()})

    def _computed(self, config: Config, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """As ``compute``, for inputs that may be changed."""
        given = self._arguments(config, inputs)
        with torch.no_grad():
            made = self._code.call(self._reference, **given, **config.scalars, **config.dims)
        return self._validated(self._reference, made, self._signature.results, config)

    def _arguments(self, config: Config, tensors: Tensors) -> dict[str, Any]:
        """These tensors as the task's functions take them: lists, ``None``, the state."""
        signature = self._signature
        given: dict[str, Any] = dict.fromkeys(config.absent)
        for argument in signature.of(config).inputs:
            tensor = tensors[argument.name]
            given[argument.name] = list(tensor.unbind(0)) if argument.listed else tensor
        if signature.state:
            state = {argument.name: tensors[argument.name] for argument in signature.state}
            given |= {**state, "state": state}
        return given

    def refuse(self, what: str) -> NoReturn:
        """Raise TaskFault, saying what is wrong with the results of ``reference``."""
        self._code.refuse(self._reference, what)

    def sensitivity(self, config: Config, inputs: Tensors, expected: Tensors) -> dict[str, Tensor]:
        """How far each output moves when every input moves by a rounding to float32, or to TF32.

        A kernel that computes in single precision is not wrong if its result is exact for inputs
        this close to the given ones. Elements with no finite movement count as 0.

        With TF32, inputs move both ways in turn: roundings are so coarse that many an element
        behind an activation moves only one way, as it is zero on the other.
        """
        generator = torch.Generator(torch.get_default_device()).manual_seed(0)
        moved = {name: torch.zeros(value.shape).double() for name, value in expected.items()}
        coarse = self.coarse(config)
        for _ in range(_PERTURBATIONS):
            signs = generator.get_state()
            for back in (False, True) if coarse else (False,):
                generator.set_state(signs)
                near = {
                    name: nudged(tensor, generator, tf32=coarse, back=back)
                    for name, tensor in inputs.items()
                }
                other = self._exact(config, near)
                del near
                for name, value in expected.items():
                    move_farther(moved[name], other.pop(name), value)
        return moved

    def rounding(self, config: Config, inputs: Tensors, expected: Tensors) -> dict[str, Tensor]:
        """How far each output moves when ``reference`` computes in single precision.

        A difference that nearly cancels, or ``log(1 + x)`` of a tiny ``x``, is then as wrong as
        in a kernel; rounding the inputs does not show that. Zero if the reference cannot compute
        in single precision, and where the result is not finite.
        """
        moved = {name: torch.zeros(value.shape).double() for name, value in expected.items()}
        for seed in range(_ROUNDED):
            given = {name: single(tensor) for name, tensor in inputs.items()}
            wide = any(tensor.dtype == torch.float64 for tensor in given.values())
            try:
                with Rounding(torch.float64 if wide else torch.float32, seed):
                    made = self._computed(config, given)
            except TaskFault:
                return moved
            for name, value in expected.items():
                move_farther(moved[name], made.pop(name), value)
        return moved

    def check(self, config: Config, inputs: Tensors, outputs: Tensors, expected: Tensors) -> str:
        """The mistakes that the task's own check finds; empty if none. Raises TaskFault.

        If the check raises on garbage in the outputs, that is the finding. If it also raises on
        the oracle's own outputs, it is the task's fault.
        """
        assert self._check is not None
        given, *rest = ({n: t.clone() for n, t in d.items()} for d in (inputs, outputs, expected))
        try:
            said = self._code.attempt(self._check, {**given, **config.scalars}, *rest)
        except (TaskFault, torch.OutOfMemoryError):
            raise
        except BaseException as error:  # noqa: BLE001 - the task's code, on hostile values
            self.check_own(config, inputs, expected)
            return f"the outputs cannot be checked: {self._code.told(error)}"
        if said is not None and not isinstance(said, str):
            self._code.refuse(
                self._check, f"check() returned {type(said).__name__}, neither None nor text"
            )
        return said or ""

    def cdf(self, config: Config, inputs: Tensors, outputs: Tensors) -> dict[str, Tensor]:
        """The probability of each element of the given outputs, or of a smaller value.

        The outputs are doubles or 64-bit integers, and may hold any values. NaN means that there
        is no such value. Raises TaskFault.
        """
        assert self._cdf is not None
        given = self._arguments(config, own_doubles(inputs))
        copies = {name: tensor.clone() for name, tensor in outputs.items()}
        with torch.no_grad():
            made = self._code.call(self._cdf, copies, **given, **config.scalars, **config.dims)
        made = plain_tensors.entries(made)
        found: dict[str, Tensor] = {}
        for name, tensor in outputs.items():
            value = made.get(name) if isinstance(made, dict) else None
            if not isinstance(value, Tensor) or value.shape != tensor.shape:
                found_here = size(value.shape) if isinstance(value, Tensor) else "none"
                what = f"cdf() returned no tensor '{name}' of {size(tensor.shape)}: {found_here}"
                self._code.refuse(self._cdf, what)
            found[name] = value.double().to(tensor.device)
        return found

    def check_own(self, config: Config, inputs: Tensors, expected: Tensors) -> None:
        """Have the task's own check look at the oracle's outputs. Raises TaskFault if it raises."""
        own = {}
        for argument in self._signature.results:
            wanted = torch_dtype(shapes.dtype_name(argument, config))
            own[argument.name] = expected[argument.name].to(wanted)
        assert self._check is not None
        self._code.call(self._check, {**inputs, **config.scalars}, own, dict(expected))

    def _validated(
        self,
        function: Callable[..., Any],
        made: Any,
        declared: tuple[Argument, ...],
        config: Config,
    ) -> dict[str, Tensor]:
        returned = f"{self._code.name(function)}() returned"
        if not isinstance(made, dict):
            what = f"{returned} {type(made).__name__}, not a dict of tensors"
            self._code.refuse(function, what)
        names = [argument.name for argument in declared]
        made = plain_tensors.entries(made)
        if any(type(key) is not str for key in made) or made.keys() != set(names):
            what = f"{returned} {plain_tensors.names(made)}, declared {sorted(names)}"
            self._code.refuse(function, what)
        found = {}
        for argument in declared:
            what = f"{returned} '{argument.name}' as"
            found[argument.name] = tensor = self._plain(function, made[argument.name], what)
            shape = shapes.shape(argument, config.dims)
            if tuple(tensor.shape) != shape:
                sizes = f"{size(tensor.shape)}, declared {size(shape)} for {config.name}"
                self._code.refuse(function, f"{what} {sizes}")
        return found

    def _plain(self, function: Callable[..., Any], value: Any, what: str) -> Tensor:
        """A returned tensor as the judge takes it; a list of tensors of one shape is stacked."""
        items = [*value] if type(value) in {list, tuple} and value else [value]
        for item in items:
            if said := plain_tensors.complaint(item):
                self._code.refuse(function, f"{what} {said}")
        try:
            mine = [plain_tensors.owned(item) for item in items]
            if mine and items[0] is not value:
                if len({(item.shape, item.dtype) for item in mine}) != 1:
                    self._code.refuse(function, f"{what} a list of tensors of several shapes")
                return torch.stack(mine)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            self._code.refuse(function, f"{what} a tensor that cannot be read: {error}")
        return mine[0]


@dataclass(frozen=True)
class Moved:
    """How far rounding moves the outputs of one call; computed for all of them on first use."""

    oracle: Oracle
    config: Config
    inputs: Tensors
    expected: Tensors

    @cached_property
    def by_inputs(self) -> Tensors:
        """``Oracle.sensitivity``, by output."""
        return self.oracle.sensitivity(self.config, self.inputs, self.expected)

    @cached_property
    def by_steps(self) -> Tensors:
        """``Oracle.rounding``, by output."""
        return self.oracle.rounding(self.config, self.inputs, self.expected)


def size(shape: tuple[int, ...] | torch.Size) -> str:
    """A shape for people: ``64x257``."""
    return "x".join(map(str, shape)) or "scalar"


def _settled(tensor: Tensor, argument: Argument, config: Config) -> Tensor:
    """The tensor as its layout stores it: elements along an axis of stride 0 are one element."""
    if not argument.layout or not tensor.numel():
        return tensor
    steps = layouts.strides(argument, config.dims)
    once = tuple(slice(0, 1) if step == 0 else slice(None) for step in steps)
    return tensor[once].expand(tensor.shape)


def _laid(tensors: Tensors) -> dict[str, Tensor]:
    """The tensors, contiguous and on PyTorch's default device."""

    here = torch.get_default_device()
    with plain_tensors.unseen():
        return {name: tensor.to(here).contiguous() for name, tensor in tensors.items()}


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).rpartition(".")[2]
