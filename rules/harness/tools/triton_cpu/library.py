"""Runs a candidate's kernels, given the text of its file and plain values.

It uses no object of the candidate's process. It parses a kernel from its file, reads the values of
the kernel's names from terms (``plain``), and launches it with numbers and addresses. So it can run
in another process than the candidate's, and that is how candidates of Triton tasks are judged.
"""

from __future__ import annotations

import ast
import linecache
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter, jit

from triton_cpu import plain
from triton_cpu.bounds import Allocation, Observer
from triton_cpu.builder import CheckedBuilder, Handle
from triton_cpu.plain import Descriptor, MalformedError, Pointer
from triton_cpu.rewrite import KernelSourceError, built

# CUDA's limits of a grid's dimensions, and HIP's to within one.
GRID_LIMITS = (2**31 - 1, 65535, 65535)


class Kernel:
    """A function of the candidate's file, for launches and for other kernels."""

    def __init__(self, name: str, make: Callable[[], Callable[..., Any]]) -> None:
        self.name = name
        self._make = make
        self._function: Callable[..., Any] | None = None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it. Raises KernelSourceError if Triton would not compile it."""
        if self._function is None:
            self._function = self._make()
        return self._function(*args, **kwargs)


class Library:
    """The kernels that a candidate has defined, by number.

    Attributes:
        launches: whether kernels run when they are launched.
        heap: returns the memory in which the storages of a launch's tensors must lie. Others are
            out of bounds, unless they are registered. None if the launching process is trusted.
    """

    def __init__(
        self, builder: CheckedBuilder, semantic: Any, file_of: Callable[[str], str]
    ) -> None:
        self._builder = builder
        self._semantic = semantic
        self._file_of = file_of
        self._kernels: dict[int, Kernel] = {}
        self.launches = True
        self.heap: Callable[[], Allocation] | None = None

    def define(
        self, number: int, where: tuple[str, int, str], names: Mapping[str, Any], *, constant: bool
    ) -> None:
        """Record a function: its file, first line and name, and the values of the names in it.

        ``constant`` marks a ``triton.constexpr_function``.
        """

        def make() -> Callable[..., Any]:
            named, line, name = where
            filename = self._file_of(named)
            definition = _definition(filename, line, name)
            visible = {name: plain.read(term, self._kernel) for name, term in names.items()}
            function = built(definition, filename, visible, None if constant else self._semantic)
            return _of_constants(function) if constant else function

        self._kernels[number] = Kernel(where[2], make)

    def launch(
        self, number: int, grid: tuple[int, ...], values: Mapping[str, Any], constants: list[str]
    ) -> None:
        """Run a kernel once for each program of the grid, the first dimension fastest.

        ``values`` are terms by parameter; ``constants`` names those that are ``tl.constexpr``.

        Raises MalformedError, and whatever the kernel raises.
        """
        kernel = self._kernel(number)
        if len(grid) != 3 or any(type(size) is not int or size < 0 for size in grid):
            raise MalformedError(f"grid {grid}")
        given = {name: plain.read(term, self._kernel) for name, term in values.items()}
        arguments = {
            name: _constant(value) if name in constants else self._argument(value)
            for name, value in given.items()
        }
        if not self.launches or not math.prod(grid):
            return
        memory, allocations = self._builder.memory, self._own(_allocations(given))
        with (
            memory.launched(allocations),
            _observed(memory.observer, kernel.name, grid),
            np.errstate(all="ignore"),
        ):
            self._run(kernel, grid, arguments)

    def observe(self, observer: Observer) -> None:
        """Notify ``observer`` of each launch and its accesses."""
        self._builder.memory.observer = observer

    def _own(self, storages: Iterator[Allocation]) -> Iterator[Allocation]:
        """The storages of a launch that lie in the heap; all of them if there is none."""
        heap = self.heap and self.heap()
        for storage in storages:
            if heap is None or heap.start <= storage.start <= storage.end <= heap.end:
                yield storage

    def _run(self, kernel: Kernel, grid: tuple[int, ...], arguments: Mapping[str, Any]) -> None:
        builder = self._builder
        outer = builder.grid_dim, builder.grid_idx
        builder.grid_dim = (grid[0], grid[1], grid[2])
        try:
            for z in range(grid[2]):
                for y in range(grid[1]):
                    for x in range(grid[0]):
                        builder.grid_idx = (x, y, z)
                        kernel(**arguments)
        finally:
            builder.grid_dim, builder.grid_idx = outer

    def _kernel(self, number: int) -> Kernel:
        if number not in self._kernels:
            raise MalformedError(f"kernel {number}")
        return self._kernels[number]

    def _argument(self, value: Any) -> Any:
        """The value that a kernel gets for an argument, with scalars typed as on a GPU."""
        if isinstance(value, Pointer):
            dtype = tl.str_to_ty(value.kind, None)
            return tl.tensor(Handle(np.array([value.address], dtype=np.uint64), dtype), dtype)
        if type(value) in {bool, int, float}:
            dtype = tl.str_to_ty(jit.mangle_type(value), None)
            held = interpreter._get_np_dtype(dtype)  # noqa: SLF001
            return tl.tensor(Handle(np.array([value], dtype=held), dtype), dtype)
        if isinstance(value, tuple):
            return interpreter._tuple_create(value, map(self._argument, value))  # noqa: SLF001
        if isinstance(value, Descriptor):
            return self._descriptor(value)
        return value

    def _descriptor(self, value: Descriptor) -> Any:
        strides = [self._argument(stride) for stride in value.strides]
        strides[-1] = tl.constexpr(1)
        return self._semantic.make_tensor_descriptor(
            base=self._argument(value.base),
            shape=[self._argument(size) for size in value.shape],
            strides=strides,
            block_shape=[tl.constexpr(size) for size in value.block_shape],
            padding_option=value.padding,
        )


@contextmanager
def _observed(observer: Observer | None, kernel: str, grid: tuple[int, ...]) -> Iterator[None]:
    if observer is None:
        yield
        return
    observer.launched(kernel, grid)
    try:
        yield
    finally:
        observer.ended()


def _of_constants(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function of constants so that it gets the values that they hold."""

    def call(*args: Any, **kwargs: Any) -> Any:
        named = {name: _constant(value) for name, value in kwargs.items()}
        return function(*map(_constant, args), **named)

    return call


def _constant(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value


def _allocations(given: Mapping[str, Any]) -> Iterator[Allocation]:
    for name, value in given.items():
        for pointer in _pointers(value):
            yield Allocation(name, pointer.start, pointer.size)


def _pointers(value: Any) -> Iterator[Pointer]:
    if isinstance(value, Pointer):
        yield value
    elif isinstance(value, Descriptor):
        yield value.base
    elif isinstance(value, tuple):
        for item in value:
            yield from _pointers(item)


@cache
def _functions(filename: str) -> Mapping[tuple[int, str], str]:
    """A file's text, under the first line (or decorator's line) and name of each ``def``."""
    text = "".join(linecache.getlines(filename))
    return {
        (min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.name): text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    }


def _definition(filename: str, line: int, name: str) -> ast.FunctionDef:
    """A new tree of the function that begins at a line. Raises KernelSourceError."""
    text = _functions(filename).get((line, name))
    for node in ast.walk(ast.parse(text)) if text is not None else ():
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == line:
                return node
    raise KernelSourceError(f"{name}: a kernel must be in the candidate's own file")
