"""Reductions and scans of Triton's interpreter, whole arrays at a time.

A combine function is elementwise, so a reduction along an axis is a tree of log2(n) calls on
halves, and a scan is log2(n) calls on shifted copies. Neighbours are combined in order, so a
function that is associative but not commutative gives the right result. 16-bit sums are rounded at
each combination, as on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.language import standard

from triton_cpu.builder import Handle, conformed


def tensor_of(values: Any, dtype: Any) -> Any:
    """Wrap an array as a Triton tensor; one of no dimensions becomes a scalar."""
    if values.shape == ():
        return tl.tensor(conformed(values.reshape(1), dtype), dtype)
    return tl.tensor(conformed(values, dtype), tl.block_type(dtype, list(values.shape)))


def reduce(
    input: Any,  # noqa: A002
    axis: Any,
    combine_fn: Any,
    keep_dims: Any = False,  # noqa: FBT002
    **_: Any,
) -> Any:
    """Stand in for `tl.reduce`."""
    if not isinstance(input, tuple):
        return reduce((input,), axis, combine_fn, keep_dims)[0]
    axis, keep_dims = _plain(axis), _plain(keep_dims)
    dtypes = [item.dtype for item in input]
    shape = tuple(input[0].handle.data.shape)
    if axis is None:
        columns = [item.handle.data.reshape(-1) for item in input]
        kept: tuple[int, ...] = (1,) * len(shape)
    else:
        axis = _wrapped(axis, len(shape))
        columns = [np.moveaxis(item.handle.data, axis, 0) for item in input]
        kept = (*shape[:axis], 1, *shape[axis + 1 :])
    results = _reduced(columns, dtypes, combine_fn)
    if keep_dims:
        results = [values.reshape(kept) for values in results]
    return tuple(tensor_of(values, dtype) for values, dtype in zip(results, dtypes, strict=True))


def associative_scan(
    input: Any,  # noqa: A002
    axis: Any,
    combine_fn: Any,
    reverse: Any = False,  # noqa: FBT002
    **_: Any,
) -> Any:
    """Stand in for `tl.associative_scan`."""
    if not isinstance(input, tuple):
        return associative_scan((input,), axis, combine_fn, reverse)[0]
    axis, reverse = _wrapped(_plain(axis), input[0].handle.data.ndim), _plain(reverse)
    dtypes = [item.dtype for item in input]
    columns = [np.moveaxis(item.handle.data, axis, 0) for item in input]
    if reverse:
        columns = [values[::-1] for values in columns]
    results = _scanned(columns, dtypes, combine_fn)
    if reverse:
        results = [values[::-1] for values in results]
    return tuple(
        tensor_of(np.moveaxis(values, 0, axis), dtype)
        for values, dtype in zip(results, dtypes, strict=True)
    )


def _reduced(columns: Sequence[Any], dtypes: Sequence[Any], combine_fn: Any) -> list[Any]:
    """Reduce along the first dimension."""
    direct = _direct_reduction(columns, dtypes, combine_fn)
    if direct is not None:
        return direct
    values = list(columns)
    while len(values[0]) > 1:
        pairs = len(values[0]) // 2
        left = [column[0 : 2 * pairs : 2] for column in values]
        right = [column[1 : 2 * pairs : 2] for column in values]
        combined = _combined(combine_fn, left, right, dtypes)
        values = [
            np.concatenate([head, column[2 * pairs :]])
            for head, column in zip(combined, values, strict=True)
        ]
    return [column[0] for column in values]


def _direct_reduction(
    columns: Sequence[Any], dtypes: Sequence[Any], combine_fn: Any
) -> list[Any] | None:
    """Reduce with one NumPy call if that equals the tree's result up to rounding; else None."""
    values = columns[0]
    wide = dtypes[0].primitive_bitwidth >= 32
    if combine_fn is standard._sum_combine and wide:  # noqa: SLF001 - Triton has no public name
        return [np.sum(values, axis=0, dtype=values.dtype)]
    if combine_fn is standard._elementwise_max:  # noqa: SLF001
        return [np.fmax.reduce(values, axis=0)]
    if combine_fn is standard._elementwise_min:  # noqa: SLF001
        return [np.fmin.reduce(values, axis=0)]
    finders: dict[int, Callable[..., Any]] = {
        id(standard._argmax_combine_tie_break_left): np.argmax,  # noqa: SLF001
        id(standard._argmin_combine_tie_break_left): np.argmin,  # noqa: SLF001
    }
    find = finders.get(id(combine_fn))
    if find is None or np.isnan(values).any():
        return None
    at = np.expand_dims(find(values, axis=0), 0)
    return [np.take_along_axis(column, at, axis=0)[0] for column in columns]


def _scanned(columns: Sequence[Any], dtypes: Sequence[Any], combine_fn: Any) -> list[Any]:
    """Scan along the first dimension."""
    values = list(columns)
    if combine_fn is standard._sum_combine and dtypes[0] != tl.bfloat16:  # noqa: SLF001
        return [np.cumsum(values[0], axis=0, dtype=values[0].dtype)]
    step = 1
    while step < len(values[0]):
        # Combine whole blocks, whose sizes are powers of two, then restore the head.
        shifted = [np.concatenate([column[:step], column[:-step]]) for column in values]
        combined = _combined(combine_fn, shifted, values, dtypes)
        values = [
            np.concatenate([column[:step], tail[step:]])
            for column, tail in zip(values, combined, strict=True)
        ]
        step *= 2
    return values


def _combined(
    combine_fn: Any, left: Sequence[Any], right: Sequence[Any], dtypes: Sequence[Any]
) -> list[Any]:
    """Call the combine function on two groups of lanes with equal shapes."""
    arguments = [
        tl.tensor(Handle(values, dtype), tl.block_type(dtype, list(values.shape)))
        for values, dtype in zip((*left, *right), (*dtypes, *dtypes), strict=True)
    ]
    results = combine_fn(*arguments)
    results = results if isinstance(results, (tuple, tl.tuple)) else (results,)
    return [
        np.broadcast_to(result.to(dtype).handle.data, values.shape)
        for result, dtype, values in zip(results, dtypes, left, strict=True)
    ]


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value


def _wrapped(axis: int, dimensions: int) -> int:
    if not -dimensions <= axis < dimensions:
        raise ValueError(f"axis {axis} is outside a tensor of {dimensions} dimensions")
    return axis % dimensions
