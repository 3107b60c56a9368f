"""A candidate's launches: their arguments are bound as Triton binds them, then written as terms."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, Protocol

from triton.runtime import jit
from triton.tools.tensor_descriptor import TensorDescriptor

from triton_cpu import plain
from triton_cpu.library import GRID_LIMITS
from triton_cpu.rewrite import rewritten

# The launch options of all of Triton's GPU back ends, besides the kernel's own parameters.
_OPTIONS = frozenset(
    {
        "num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu", "kpack", "debug",
        "matrix_instr_nonkdim", "enable_fp_fusion", "extern_libs", "ir_override", "arch",
        "launch_cooperative_grid", "launch_pdl", "schedule_hint", "allow_flush_denorm",
        "sanitize_overflow", "instrumentation_mode", "warp_size", "cluster_dims",
    }
)  # fmt: skip


class LaunchError(Exception):
    """<kernel>: <what is wrong with the launch>."""


class Device(Protocol):
    """Where kernels run: a ``Library`` of this process, or of another one."""

    def define(
        self, number: int, where: tuple[str, int, str], names: Mapping[str, Any], *, constant: bool
    ) -> None:
        """Record a function; see ``Library.define``."""

    def launch(
        self, number: int, grid: tuple[int, ...], values: Mapping[str, Any], constants: list[str]
    ) -> None:
        """Run a kernel; see ``Library.launch``."""


class Definitions:
    """The functions that a device knows; each is sent when it is first needed.

    The values of its names are fixed at that time, as in Triton's compiler.
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._known: dict[int, tuple[int, Any]] = {}

    def number(self, function: Any) -> int:
        """The number of a kernel or a function of constants. Raises NotPlainError for others."""
        if id(function) in self._known:
            return self._known[id(function)][0]
        if type(function) not in {HostFunction, jit.ConstexprFunction}:
            raise plain.NotPlainError(type(function).__name__)
        number = len(self._known)
        self._known[id(function)] = number, function  # kept alive, so that its id stays unique
        python = function.fn
        where = (python.__code__.co_filename, python.__code__.co_firstlineno, python.__name__)
        terms = {n: plain.seen(value, self.number) for n, value in _names(python)}
        constant = type(function) is jit.ConstexprFunction
        self.device.define(number, where, terms, constant=constant)
        return number


class DeviceFunction:
    """A function of Triton's library that kernels call."""

    semantic: Any

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.arg_names = list(inspect.signature(fn).parameters)
        self.__name__ = fn.__name__
        self.__doc__ = fn.__doc__
        self.__module__ = fn.__module__
        self._rewritten: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run within a kernel."""
        if self._rewritten is None:
            self._rewritten = rewritten(self.fn, self.semantic)
        return self._rewritten(*args, **kwargs)


class HostFunction(jit.KernelInterface):  # type: ignore[misc]  # Triton has no types
    """A function decorated with `@triton.jit`: a kernel, or a function that kernels call."""

    definitions: Definitions

    def __init__(self, fn: Callable[..., Any], **_: Any) -> None:
        self.fn = fn
        self.signature = inspect.signature(fn)
        self.arg_names = list(self.signature.parameters)
        self.pre_run_hooks: list[Callable[..., Any]] = []
        self.__name__ = fn.__name__
        self.__doc__ = fn.__doc__
        self.__module__ = fn.__module__
        self._constants = [
            name
            for name, parameter in self.signature.parameters.items()
            if parameter.annotation is not parameter.empty
            and jit._normalize_ty(parameter.annotation) == "constexpr"  # noqa: SLF001
        ]

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Call `hook` with the arguments before each launch."""
        self.pre_run_hooks.append(hook)

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Refuse: only kernels may call a kernel, and they see another object in its place."""
        raise LaunchError(
            f"{self.__name__}: launch a kernel with a grid; only kernels may call it directly"
        )

    def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
        """Launch over `grid`, a tuple or a function of the bound arguments.

        Raises LaunchError, OutOfBoundsError, UnsupportedOperationError, or whatever the kernel
        raises itself.
        """
        if warmup:
            return
        bound = self._bound(args, kwargs)
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        shape = self._grid(grid(bound) if callable(grid) else grid)
        self._check_tensors(bound)
        values = {name: self._term(name, value) for name, value in bound.items()}
        definitions = self.definitions
        definitions.device.launch(definitions.number(self), shape, values, self._constants)

    def _term(self, name: str, value: Any) -> Any:
        write = plain.written if name in self._constants else plain.passed
        try:
            return write(value, self.definitions.number)
        except plain.NotPlainError as error:
            what = f"argument '{name}' is a {error}"
            raise LaunchError(f"{self.__name__}: {what}, which Triton does not accept") from None

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        own = {name: value for name, value in kwargs.items() if name in self.arg_names}
        unknown = sorted(kwargs.keys() - own.keys() - _OPTIONS)
        if unknown:
            raise LaunchError(f"{self.__name__}: no parameter or launch option '{unknown[0]}'")
        warps = kwargs.get("num_warps", 4)
        if not (isinstance(warps, int) and warps > 0 and warps & (warps - 1) == 0):
            raise LaunchError(f"{self.__name__}: num_warps must be a power of two, not {warps}")
        try:
            bound = self.signature.bind(*args, **own)
        except TypeError as error:
            raise LaunchError(f"{self.__name__}: {error}") from error
        bound.apply_defaults()
        return dict(bound.arguments)

    def _grid(self, grid: Any) -> tuple[int, int, int]:
        sizes = tuple(grid) if isinstance(grid, Sequence) else (grid,)
        if not 1 <= len(sizes) <= 3:
            raise LaunchError(f"{self.__name__}: a grid has one to three dimensions, not {sizes}")
        try:
            whole = [int(size) for size in sizes]
        except (TypeError, ValueError) as error:
            raise LaunchError(
                f"{self.__name__}: the sizes of a grid are integers, not {sizes}"
            ) from error
        whole += [1] * (3 - len(whole))
        if any(not 0 <= size <= most for size, most in zip(whole, GRID_LIMITS, strict=True)):
            raise LaunchError(
                f"{self.__name__}: grid {tuple(whole)} is outside the limits, 0 to {GRID_LIMITS}"
            )
        return whole[0], whole[1], whole[2]

    def _check_tensors(self, bound: Mapping[str, Any]) -> None:
        for name, value in bound.items():
            for tensor in _tensors(value):
                if tensor.device.type != "cpu":
                    raise LaunchError(
                        f"{self.__name__}: tensor '{name}' is on {tensor.device}, not on the cpu"
                    )


def _tensors(value: Any) -> Iterator[Any]:
    """Find the tensors within one argument of a launch."""
    if isinstance(value, tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, (TensorDescriptor, jit.TensorWrapper)):
        yield from _tensors(value.base)
    elif hasattr(value, "untyped_storage"):
        yield value


def _names(function: Callable[..., Any]) -> Iterator[tuple[str, Any]]:
    """The values of the names in a function's body, and its defaults as ``<parameter>=``."""
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    for name in sorted(_mentioned(code)):
        if name in cells:
            yield name, cells[name].cell_contents
        elif name in function.__globals__:
            yield name, function.__globals__[name]
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.default is not parameter.empty:
            yield f"{name}=", parameter.default


def _mentioned(code: CodeType) -> set[str]:
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    return {*code.co_names, *code.co_freevars}.union(*map(_mentioned, inner))
