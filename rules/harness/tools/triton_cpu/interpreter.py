"""Makes Triton's interpreter a correct, checked target: the cpu platform of Triton tasks.

Call `install()` once per process, before the module with the kernels is imported. From then on
`@triton.jit` makes functions that run on the host. Memory accesses are checked, bfloat16 is rounded
correctly, and autotuning works. Operations that would compute wrong values are refused by name.
The change lasts as long as the process, which can no longer compile for a GPU.

    install()
    with tensors(x=x, y=y):
        module.softmax(x, y, rows=4, cols=8)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
import triton
import triton.language as tl
from triton import knobs
from triton.language.semantic import TritonSemantic
from triton.runtime import autotuner, driver, interpreter, jit

from triton_cpu import builder as operations
from triton_cpu import language, libdevice, reduce, types
from triton_cpu.bounds import Allocation, Memory, OutOfBoundsError
from triton_cpu.driver import CpuDriver, run_once
from triton_cpu.launch import Definitions, Device, DeviceFunction, HostFunction
from triton_cpu.library import Library

__all__ = ["VERSION", "OutOfBoundsError", "install", "library", "memory", "run_on", "tensors"]

VERSION = "3.6.0"

memory = Memory()


def install() -> None:
    """Turn this process's Triton into the cpu platform. A second call does nothing.

    Kernels run in this process, from any file, until ``run_on`` names another device.

    Works whether or not Triton was imported before, with or without TRITON_INTERPRET. Raises
    RuntimeError for another version of Triton, whose internals may differ.
    """
    if interpreter.InterpretedFunction is HostFunction:
        return
    if triton.__version__ != VERSION:
        raise RuntimeError(f"the cpu platform needs triton {VERSION}, found {triton.__version__}")
    known = language.names()
    torch.set_num_threads(1)  # a sum's order must not depend on the machine
    knobs.runtime.interpret = True
    interpreter._get_np_dtype = operations.numpy_dtype  # noqa: SLF001
    interpreter._validate_np_data_size = operations.fits  # noqa: SLF001
    builder = operations.CheckedBuilder(memory)
    semantic = DeviceFunction.semantic = TritonSemantic(builder)
    interpreter.interpreter_builder = builder
    interpreter.interpreter_semantic = semantic
    interpreter.InterpreterBuilder = lambda: builder
    interpreter.InterpretedFunction = HostFunction
    _host_the_library()
    _patch_language(builder)
    types.install()
    libdevice.install()
    driver.set_active(CpuDriver())
    autotuner.Autotuner.do_bench = property(lambda _: run_once)
    language.settle(known)
    run_on(library(lambda filename: filename))


def library(file_of: Callable[[str], str]) -> Library:
    """Make a library of kernels that run in this process; requires ``install``.

    ``file_of`` maps the file that a function claims to be from to the file that is read.
    """
    semantic = DeviceFunction.semantic
    return Library(semantic.builder, semantic, file_of)


def run_on(device: Device) -> None:
    """Run the launches of this process on ``device``."""
    HostFunction.definitions = Definitions(device)


def tensors(**named: Any) -> AbstractContextManager[None]:
    """Name the tensors that launches within the context may touch, and their exact extents.

    A launch's other arguments are legal too, each with its whole storage, if that overlaps none
    of these extents.
    """
    return memory.registered([_extent(name, tensor) for name, tensor in named.items()])


def _extent(name: str, tensor: Any) -> Allocation:
    """Measure the bytes from the first to the last element of a tensor with any strides."""
    if tensor.numel() == 0:
        return Allocation(name, tensor.data_ptr(), 0)
    last = sum(
        (size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return Allocation(name, tensor.data_ptr(), (last + 1) * tensor.element_size())


def _host_the_library() -> None:
    """Rewrap the device functions of triton.language, which were decorated when it was imported."""
    modules = [
        module
        for name, module in sorted(sys.modules.items())
        if name == "triton.language" or name.startswith("triton.language.")
    ]
    wrapped: dict[int, DeviceFunction] = {}
    for owner in (*modules, tl.tensor):
        for name, value in list(vars(owner).items()):
            if isinstance(value, (jit.JITFunction, _Interpreted)):
                function = wrapped.setdefault(id(value), DeviceFunction(value.fn))
                setattr(owner, name, _member(function) if owner is tl.tensor else function)


_Interpreted = interpreter.InterpretedFunction


def _member(function: DeviceFunction) -> Any:
    """Make a device function a method of tl.tensor."""

    def method(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return method


def _patch_language(builder: operations.CheckedBuilder) -> None:
    """Point Triton's built-ins at the builder, once instead of at each launch."""
    scope = interpreter._LangPatchScope()  # noqa: SLF001
    for module in (tl, tl.core, tl.math):
        interpreter._patch_builtin(module, builder, scope)  # noqa: SLF001
    for kind in (tl.tensor, tl.core.tensor_descriptor_base):
        interpreter._patch_builtin(kind, builder, scope)  # noqa: SLF001
    interpreter._patch_lang_tensor(tl.tensor, scope)  # noqa: SLF001
    for module in (tl, tl.core):
        interpreter._patch_lang_core(module, scope)  # noqa: SLF001
    for owner in (tl, tl.core, tl.tensor):
        owner.reduce = reduce.reduce
        owner.associative_scan = reduce.associative_scan
    tl.tensor.__bool__ = lambda _: True
    tl.tensor.__index__ = lambda value: int(value.handle.data.item())
