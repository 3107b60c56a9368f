"""Boundaries of the form ``Model(*init)(*inputs)``: PyTorch modules with weights."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from imported.boundary import Arguments, LeftOutError, declared, integers_of, returned
from imported.precision import doubled, excess
from imported.seeding import seed_all
from imported.shape_space import INTEGERS, Shapes, Space
from imported.shapes_only import ShapesOnly

LONGEST = 20.0
"""The most seconds of one call with small sizes for a task to be judged on a CPU."""

SPREAD = 0.25
_SIZE_MAY_MATTER = ("RANDOM_RESULTS", "DOES_NOT_RUN")

Path = list[int]
T = TypeVar("T")


@dataclass(frozen=True)
class ModuleCall:
    """The inputs, weights and results of a module.

    Attributes:
        init, arguments, targets: text of a declaration's ``call``.
        paths: where each input is among the arguments.
    """

    init: str
    arguments: str
    targets: str
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    state: Mapping[str, Tensor]
    scalars: Mapping[str, float]
    paths: Mapping[str, Path]

    def attributes(self, entry: str, space: Space) -> dict[str, Any]:
        """What a declaration says of the call of ``entry`` and of its shape space."""
        kinds = {"inputs": self.inputs, "outputs": self.outputs, "state": self.state}
        return {
            "call": f"{self.targets} = {entry}({self.init})({self.arguments})",
            **{
                kind: {n: declared(t, space.shapes[f"{kind}.{n}"]) for n, t in tensors.items()}
                for kind, tensors in kinds.items()
            },
            "layout": dict.fromkeys(self.outputs, "any"),  # the originals compare values alone
            "scalars": dict(self.scalars),
            **space.attributes(),
        }


def build(kind: Callable[..., torch.nn.Module], init: Any) -> torch.nn.Module:
    """The module, from a list of arguments or a pair of these and keywords."""
    if len(init) == 2 and isinstance(init[0], list) and isinstance(init[1], dict):
        return kind(*init[0], **init[1])
    return kind(*init)


def under_seed(generator: torch.Generator, draw: Callable[[], T]) -> T:
    """The result of ``draw`` on the generator's device; seeds all global generators."""
    device = generator.device
    seed = int(torch.randint(0, 2**31 - 1, (1,), generator=generator, device=device))
    with torch.random.fork_rng([device] if device.type == "cuda" else []), device:
        seed_all(seed)
        return draw()


def shapes_of(init: Any, model: torch.nn.Module, arguments: Sequence[Any]) -> Shapes:
    """The shape of everything that crosses the boundary, and its integers."""
    state = {f"state.{name}": tuple(t.shape) for name, t in model.state_dict().items()}
    with torch.no_grad(), ShapesOnly():
        result = model(*arguments)
    found = {f"inputs.{n}": tuple(t.shape) for n, t in _tensors(arguments).items()}
    found.update((f"outputs.{n}", tuple(t.shape)) for n, t in returned(result)[1].items())
    integers = {f"{INTEGERS}init": (*integers_of(init),)}
    integers[f"{INTEGERS}in"] = (*integers_of(arguments),)
    return {**found, **state, **integers}


def call_of(
    init: Any, model: torch.nn.Module, arguments: Sequence[Any], space: Space
) -> ModuleCall:
    """The call of a module on the meta device, in the words of ``space``. Raises LeftOutError."""
    said = Arguments(iter(space.shapes[f"{INTEGERS}init"]))
    keywords = len(init) == 2 and isinstance(init[0], list) and isinstance(init[1], dict)
    positional, named = (init[0], init[1]) if keywords else (init, {})
    parts = [said.text(value, f"init_{i}") for i, value in enumerate(positional)]
    parts += [f"{name}={said.text(value, f'init_{name}')}" for name, value in named.items()]
    if said.tensors:
        raise LeftOutError("CONSTRUCTOR_TAKES_TENSORS", "its constructor takes tensors")
    called = Arguments(iter(space.shapes[f"{INTEGERS}in"]))
    passed = [called.text(value, f"x{i}") for i, value in enumerate(arguments)]
    with torch.no_grad(), ShapesOnly():
        targets, outputs = returned(model(*arguments))
    return ModuleCall(
        init=", ".join(parts),
        arguments=", ".join(passed),
        targets=targets,
        inputs=called.tensors,
        outputs=outputs,
        state=dict(model.state_dict()),
        scalars={**said.scalars, **called.scalars},
        paths={name: [*path] for name, path in _paths(arguments)},
    )


def tensors_at(arguments: Sequence[Any], paths: Mapping[str, Path]) -> dict[str, Tensor]:
    """The inputs by name, at any depth of the arguments."""
    return {name: _at(arguments, path).detach() for name, path in paths.items()}


def state_of(model: torch.nn.Module) -> dict[str, Tensor]:
    """The weights by name; what construction leaves constant is moved by ``SPREAD``.

    A kernel that takes scales for one and shifts for zero is wrong then.
    """
    return {name: moved(name, t.detach().clone()) for name, t in model.state_dict().items()}


def moved(name: str, value: Tensor) -> Tensor:
    """A weight, or where it is constant, the same moved by ``SPREAD``; variances upwards.

    A single number keeps its sign and size: it may be an epsilon.
    """
    if not value.is_floating_point() or not value.numel():
        return value
    if not value.dim() and value:
        return value * (1 + SPREAD * torch.rand_like(value))
    if not bool((value == value.flatten()[0]).all()):
        return value
    step = SPREAD * torch.randn_like(value)
    return value + (step.abs() if name.endswith("var") else step)


def run(
    model: torch.nn.Module,
    arguments: Sequence[Any],
    paths: Mapping[str, Path],
    given: Mapping[str, Any],
    *,
    seed: int = 0,
) -> dict[str, Tensor]:
    """The results of a call with the tensors in ``given``: inputs and weights by name."""
    placed = [_placed(value, [i], paths, given) for i, value in enumerate(arguments)]
    state = {name: given[name].clone() for name in model.state_dict()}
    torch.manual_seed(seed)
    with torch.no_grad():
        return returned(torch.func.functional_call(model, state, tuple(placed)))[1]


@dataclass(frozen=True)
class Drawn:
    """A call with the same arguments and weights under any seed; ``parts`` draws all anew."""

    parts: Callable[[], tuple[Any, torch.nn.Module, Sequence[Any]]]
    arguments: Sequence[Any]
    paths: Mapping[str, Path]
    given: Mapping[str, Tensor]

    @classmethod
    def of(
        cls,
        parts: Callable[[], tuple[Any, torch.nn.Module, Sequence[Any]]],
        paths: Mapping[str, Path],
    ) -> Drawn:
        """One draw of arguments and weights."""
        torch.manual_seed(1)
        _, model, arguments = parts()
        return cls(parts, arguments, paths, {**tensors_at(arguments, paths), **state_of(model)})

    def call(self, seed: int) -> dict[str, Tensor]:
        """The results under a seed."""
        return self._results(self.given, seed)

    def excess(self) -> float:
        """The distance from the results in double precision, in tolerances."""
        return excess(self.call(1), self._results(doubled(self.given), 1))

    def _results(self, given: Mapping[str, Tensor], seed: int) -> dict[str, Tensor]:
        with numbers_like(given.values()):
            torch.manual_seed(seed)
            return run(self.parts()[1], self.arguments, self.paths, given, seed=seed)


def check_execution(call: Callable[[int], Mapping[str, Tensor]], hidden: str = "") -> None:
    """Call with data under two seeds. Raises LeftOutError if the results cannot be judged.

    ``hidden`` is a tensor that may be why results differ.
    """
    began = time.process_time()
    try:
        first = call(1)
        seconds = time.process_time() - began
        again, other = call(1), call(2)
    except (MemoryError, RuntimeError, IndexError) as error:
        raise LeftOutError(
            "DOES_NOT_RUN", f"it fails with small sizes: {first_line(error)}"
        ) from None
    if seconds > LONGEST:
        what = f"a call takes {seconds:.0f} s with the smallest sizes that were found"
        raise LeftOutError("TOO_SLOW", what)
    if not all(identical(first[n], again[n]) for n in first):
        raise LeftOutError("NOT_REPEATABLE", "equal calls under one seed differ")
    if all(_close(first[n], other[n]) for n in first):
        return
    if hidden:
        what = f"its tensor '{hidden}' is in no state_dict"
        raise LeftOutError("HIDDEN_TENSOR", what)
    what = "its results are random in the mode that it is called in, as by dropout"
    raise LeftOutError("RANDOM_RESULTS", what)


def settled(space: Space, check: Callable[[Mapping[str, int]], None]) -> Space:
    """The space, where ``check`` accepts its small sizes; else with one dim kept as it is.

    What is random at the start of a long sequence is forgotten at its end, and indices may be drawn
    for one size only. Raises LeftOutError.
    """
    try:
        check(space.small)
    except LeftOutError as error:
        for dim in space.dims if error.reason in _SIZE_MAY_MATTER else ():
            kept = replace(dim, small=dim.original, low=dim.original)
            held = replace(space, dims=tuple(kept if d is dim else d for d in space.dims))
            with contextlib.suppress(LeftOutError):
                check(held.small)
                return held
        raise
    return space


@contextlib.contextmanager
def numbers_like(given: Iterable[Any]) -> Iterator[None]:
    """Tensors that the original makes for itself have the element type of the given ones."""
    kinds = [t.dtype for t in given if isinstance(t, Tensor) and t.dtype.is_floating_point]
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if torch.float64 in kinds else before)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def hidden_tensor(model: torch.nn.Module) -> str:
    """A tensor that no ``state_dict`` has, so that it cannot be handed over; empty for none."""
    known = {id(tensor) for tensor in model.state_dict(keep_vars=True).values()}
    for name, module in model.named_modules():
        held = {**vars(module), **module._buffers, **module._parameters}  # noqa: SLF001
        for key, value in held.items():
            if isinstance(value, Tensor) and id(value) not in known:
                return f"{name}.{key}".removeprefix(".")
    return ""


def identical(one: Tensor, other: Tensor) -> bool:
    """Whether all elements are the same, or both not a number."""
    if one.is_floating_point():  # few operators know the small types
        one, other = one.double(), other.double()
    return torch.equal(one.nan_to_num(), other.nan_to_num())


def _close(one: Tensor, other: Tensor) -> bool:
    """Whether two results differ by less than a kernel's rounding would."""
    return torch.allclose(one.double(), other.double(), rtol=1e-5, atol=1e-6, equal_nan=True)


def _tensors(arguments: Sequence[Any]) -> dict[str, Tensor]:
    return {name: _at(arguments, path) for name, path in _paths(arguments)}


def _paths(
    arguments: Any, name: str = "x", path: tuple[int, ...] = ()
) -> Iterator[tuple[str, Path]]:
    for index, value in enumerate(arguments):
        here = f"{name}{index}" if not path else f"{name}_{index}"
        if isinstance(value, Tensor):
            yield here, [*path, index]
        elif isinstance(value, list | tuple):
            yield from _paths(value, here, (*path, index))


def _at(arguments: Any, path: Path) -> Tensor:
    for index in path:
        arguments = arguments[index]
    assert isinstance(arguments, Tensor)
    return arguments


def _placed(value: Any, here: Path, paths: Mapping[str, Path], given: Mapping[str, Any]) -> Any:
    """The argument at a place, with the given tensors in it."""
    if isinstance(value, Tensor):
        return given[next(name for name, path in paths.items() if path == here)]
    if isinstance(value, list | tuple):
        return type(value)(_placed(v, [*here, i], paths, given) for i, v in enumerate(value))
    return value


def first_line(error: BaseException) -> str:
    """An error's first line, without addresses."""
    text = str(error).strip().partition("\n")[0]
    return re.sub(r"0x[0-9a-f]+", "0x...", f"{type(error).__name__}: {text}")[:200]
