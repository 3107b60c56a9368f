"""Runs Triton kernels on the host: binds the arguments, then calls the kernel once a program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter, jit
from triton.tools.tensor_descriptor import TensorDescriptor

from triton_cpu.bounds import Allocation
from triton_cpu.builder import CheckedBuilder, Handle
from triton_cpu.rewrite import rewritten
from triton_cpu.visible import is_value

# What a launch may say beside the kernel's own parameters, on any of Triton's GPU back ends.
_OPTIONS = frozenset(
    {
        "num_warps", "num_stages", "num_ctas", "maxnreg", "waves_per_eu", "kpack", "debug",
        "matrix_instr_nonkdim", "enable_fp_fusion", "extern_libs", "ir_override", "arch",
        "launch_cooperative_grid", "launch_pdl", "schedule_hint", "allow_flush_denorm",
        "sanitize_overflow", "instrumentation_mode", "warp_size", "cluster_dims",
    }
)  # fmt: skip
# CUDA's limits of a grid's dimensions, and HIP's to within one.
_GRID_LIMITS = (2**31 - 1, 65535, 65535)


class LaunchError(Exception):
    """<kernel>: <what is wrong with the launch>."""


class HostFunction(jit.KernelInterface):  # type: ignore[misc]  # Triton has no types
    """What `@triton.jit` makes under the cpu platform: a kernel, or a device function."""

    builder: CheckedBuilder
    semantic: Any
    launches = True

    def __init__(self, fn: Callable[..., Any], **_: Any) -> None:
        self.fn = fn
        self.signature = inspect.signature(fn)
        self.arg_names = list(self.signature.parameters)
        self.pre_run_hooks: list[Callable[..., Any]] = []
        self.__name__ = fn.__name__
        self.__doc__ = fn.__doc__
        self.__module__ = fn.__module__
        self._constants = frozenset(
            name
            for name, parameter in self.signature.parameters.items()
            if parameter.annotation is not parameter.empty
            and jit._normalize_ty(parameter.annotation) == "constexpr"  # noqa: SLF001
        )
        self._kernel: Callable[..., Any] | None = None

    def add_pre_run_hook(self, hook: Callable[..., Any]) -> None:
        """Call `hook` with the arguments before each launch."""
        self.pre_run_hooks.append(hook)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run as a device function, called from a kernel."""
        if self._kernel is None:
            self._kernel = rewritten(self.fn, self.semantic)
        return self._kernel(*args, **kwargs)

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
        allocations = list(self._allocations(bound))
        # Whatever these objects do when they are asked, they do without launches, too.
        values = {name: self._value(name, value) for name, value in bound.items()}
        if not self.launches:
            return
        with self.builder.memory.launched(allocations), np.errstate(all="ignore"):
            self._run_programs(shape, values)

    def _value(self, name: str, value: Any) -> Any:
        """What the kernel gets for an argument."""
        if name not in self._constants and _is_on_device(value):
            return _device_value(value)
        if not is_value(value):
            what = f"argument '{name}' is a {type(value).__name__}"
            raise LaunchError(f"{self.__name__}: {what}, which kernels cannot have")
        return _constant(value) if name in self._constants else _device_value(value)

    def _run_programs(self, shape: tuple[int, int, int], values: Mapping[str, Any]) -> None:
        """Call the kernel for each program, the first dimension fastest."""
        outer = self.builder.grid_dim, self.builder.grid_idx
        self.builder.grid_dim = shape
        try:
            for z in range(shape[2]):
                for y in range(shape[1]):
                    for x in range(shape[0]):
                        self.builder.grid_idx = (x, y, z)
                        self(**values)
        finally:
            self.builder.grid_dim, self.builder.grid_idx = outer

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
            raise LaunchError(f"{self.__name__}: a grid has whole numbers, not {sizes}") from error
        whole += [1] * (3 - len(whole))
        if any(not 0 <= size <= most for size, most in zip(whole, _GRID_LIMITS, strict=True)):
            raise LaunchError(f"{self.__name__}: grid {tuple(whole)} is beyond {_GRID_LIMITS}")
        return whole[0], whole[1], whole[2]

    def _allocations(self, bound: Mapping[str, Any]) -> Iterator[Allocation]:
        for name, value in bound.items():
            for tensor in _tensors(value):
                if tensor.device.type != "cpu":
                    raise LaunchError(
                        f"{self.__name__}: tensor '{name}' is on {tensor.device}, not on the cpu"
                    )
                storage = tensor.untyped_storage()
                yield Allocation(name, storage.data_ptr(), storage.nbytes())


def _tensors(value: Any) -> Iterator[Any]:
    """Find the tensors within one argument of a launch."""
    if isinstance(value, tuple):
        for item in value:
            yield from _tensors(item)
    elif isinstance(value, (TensorDescriptor, jit.TensorWrapper)):
        yield from _tensors(value.base)
    elif hasattr(value, "untyped_storage"):
        yield value


def _is_on_device(value: Any) -> bool:
    """Whether a kernel gets numbers for it instead of the object."""
    if isinstance(value, tuple):
        return all(map(_is_on_device, value))
    return isinstance(value, TensorDescriptor) or hasattr(value, "data_ptr")


def _constant(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value


def _device_value(value: Any) -> Any:
    """Turn an argument into what the kernel sees: scalars are typed as on a GPU."""
    if isinstance(value, (bool, int, float)):
        dtype = tl.str_to_ty(jit.mangle_type(value), None)
        held = interpreter._get_np_dtype(dtype)  # noqa: SLF001
        return tl.tensor(Handle(np.array([value], dtype=held), dtype), dtype)
    if isinstance(value, tuple):
        return interpreter._tuple_create(value, map(_device_value, value))  # noqa: SLF001
    if isinstance(value, TensorDescriptor):
        return interpreter._implicit_cvt(value)  # noqa: SLF001
    if hasattr(value, "data_ptr"):
        dtype = tl.str_to_ty(jit.mangle_type(value), None)
        address = np.array([value.data_ptr()], dtype=np.uint64)
        return tl.tensor(Handle(address, dtype), dtype)
    return value


def hosted(function: Any) -> HostFunction:
    """Turn a function that Triton has wrapped already into a HostFunction."""
    return HostFunction(function.fn)
