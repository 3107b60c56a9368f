"""Configs: the visible points of a task's shape space."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kabuild.rule import AttributeProblem

from .expressions import holds, read_ranges, value_of
from .signature import Scalar, Signature, is_number
from .tensors import Tensor, read_strides
from .terms import DTYPES, ELEMENT, FLOATING

MOST_CONFIGS = 1000
"""Limit on configs. Each is judged in every gate; more take hours, to load as well as to judge."""

_MOST_BYTES = 2**38
"""Limit on the bytes of a tensor: more than any device holds."""


@dataclass(frozen=True)
class Config:
    """One point: a value for every dim and scalar, and the element type.

    Attributes:
        absent: the optional tensors that are ``None``.
    """

    dims: tuple[tuple[str, int], ...]
    dtype: str
    scalars: tuple[tuple[str, Scalar], ...]
    absent: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its name: ``f16 rows=4096 cols=1024``."""
        left_out = (f"{name}=none" for name in self.absent)
        return " ".join((self.dtype, *(f"{name}={value}" for name, value in self.dims), *left_out))

    def to_json(self) -> dict[str, Any]:
        """The form for the judge."""
        return {
            "name": self.name,
            "dims": dict(self.dims),
            "dtype": self.dtype,
            "scalars": dict(self.scalars),
            **({"absent": list(self.absent)} if self.absent else {}),
        }


def visible_configs(
    attrs: Mapping[str, Any], signature: Signature, platform: str
) -> tuple[Config, ...]:
    """The configs of one platform: ``platform_configs.<platform>`` or else ``configs``."""
    own = attrs["platform_configs"].get(platform)
    declared = attrs["configs"] if own is None else own
    path = ("configs",) if own is None else ("platform_configs", platform)
    return read_configs(declared, path, attrs, signature)


def all_configs(attrs: Mapping[str, Any], signature: Signature) -> tuple[Config, ...]:
    """The configs declared for all platforms. Raises AttributeProblem."""
    found = list(read_configs(attrs["configs"], ("configs",), attrs, signature))
    for platform, declared in sorted(attrs["platform_configs"].items()):
        found += read_configs(declared, ("platform_configs", platform), attrs, signature)
    return tuple(found)


def read_configs(
    declared: Any, path: tuple[str, ...], attrs: Mapping[str, Any], signature: Signature
) -> tuple[Config, ...]:
    """Validate a list of configs against the shape space. Raises AttributeProblem."""
    if not isinstance(declared, list | tuple) or not declared:
        raise AttributeProblem("no configs: a task needs at least one", path)
    if len(declared) > MOST_CONFIGS:
        what = f"{len(declared)} configs: at most {MOST_CONFIGS:,} can be judged"
        raise AttributeProblem(what, path)
    configs = []
    for index, item in enumerate(declared):
        if not isinstance(item, Mapping):
            raise AttributeProblem(
                f"{item!r} is not a config", (*path, index), "write { rows = 64 }"
            )
        configs.append(_read_config(item, (*path, index), attrs, signature))
    names = [config.name for config in configs]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise AttributeProblem(f"config '{name}' is declared twice", (*path, index))
    return tuple(configs)


def _read_config(
    item: Mapping[str, Any],
    path: tuple[str | int, ...],
    attrs: Mapping[str, Any],
    signature: Signature,
) -> Config:
    dtypes = attrs["dtypes"]
    ranges = read_ranges(attrs["dims"])
    scalars = dict(signature.scalars)
    optional = [tensor.name for tensor in signature.inputs if tensor.optional]
    for key in item:
        if key not in {"dtype", *ranges, *scalars, *optional}:
            known = ", ".join((*ranges, *scalars, *optional, "dtype"))
            raise AttributeProblem(f"unknown dim '{key}'", (*path, key), f"known: {known}")
    dtype = item.get("dtype", dtypes[0])
    if dtype not in dtypes:
        raise AttributeProblem(
            f"dtype '{dtype}' is outside the task's: {', '.join(dtypes)}", (*path, "dtype")
        )
    dims = tuple((name, _read_dim(name, item, path, ranges[name])) for name in ranges)
    for name, default in signature.scalars:
        value = item.get(name, default)
        if not _is_like(value, default):
            raise AttributeProblem(
                f"{value!r} is not a valid value of scalar '{name}'", (*path, name)
            )
    _check_shapes(signature, dict(dims), dtype, path)
    _check_conditions(attrs, dict(dims), path)
    values = tuple((name, item.get(name, default)) for name, default in signature.scalars)
    absent = tuple(name for name in optional if not _is_present(name, item, path))
    return Config(dims, dtype, values, absent)


def _is_like(value: Any, default: Scalar) -> bool:
    """Whether a value has the type of its default; an integer may replace a float."""
    if isinstance(default, bool | str):
        return type(value) is type(default)
    return is_number(value) and (isinstance(default, float) or isinstance(value, int))


def _is_present(name: str, item: Mapping[str, Any], path: tuple[str | int, ...]) -> bool:
    present = item.get(name, True)
    if not isinstance(present, bool):
        what = f"'{name}' must be true or false, got {present!r}"
        raise AttributeProblem(what, (*path, name), f"write {name} = false")
    return present


def _check_conditions(
    attrs: Mapping[str, Any], dims: Mapping[str, int], path: tuple[str | int, ...]
) -> None:
    for condition in attrs.get("where") or ():
        if not holds(condition, dims):
            raise AttributeProblem(f"config outside the shape space: not {condition}", path)


def _check_shapes(
    signature: Signature, dims: Mapping[str, int], dtype: str, path: tuple[str | int, ...]
) -> None:
    """Refuse a config with an invalid, empty or absurdly large tensor."""
    outputs = {tensor.name for tensor in signature.outputs}
    for tensor in (*signature.inputs, *signature.outputs, *signature.state):
        sizes = [_size(tensor, expression, dims, path) for expression in tensor.shape]
        count = _size(tensor, tensor.count, dims, path) if tensor.count else 1
        elements = math.prod(sizes) * count
        if not elements and tensor.name in outputs:
            what = f"output '{tensor.name}' has no elements in this config"
            raise AttributeProblem(what, path, "without any there is nothing to compare")
        steps = [_size(tensor, step, dims, path) for step in read_strides(tensor.layout) or ()]
        reach = 1 + sum((size - 1) * step for size, step in zip(sizes, steps, strict=False))
        itemsize = DTYPES[dtype if tensor.dtype == ELEMENT else tensor.dtype].size
        if max(elements, reach) * itemsize > _MOST_BYTES:
            what = f"'{tensor.name}' has {_count(max(elements, reach))} elements in this config"
            hint = f"no device holds more than {_MOST_BYTES >> 30} GiB"
            raise AttributeProblem(what, path, hint)


def _size(
    tensor: Tensor, expression: str, dims: Mapping[str, int], path: tuple[str | int, ...]
) -> int:
    """The value of a shape or stride expression, which must not be negative."""
    try:
        size = value_of(expression, dims)
    except ZeroDivisionError:
        raise AttributeProblem(
            f"the shape of '{tensor.name}' is invalid: '{expression}' divides by zero", path
        ) from None
    if size < 0:
        what = f"the shape of '{tensor.name}' is invalid: '{expression}' is {size}"
        raise AttributeProblem(what, path)
    return size


def _count(number: int) -> str:
    return f"{number:,}" if number < 10**18 else "more than 10^18"


def _read_dim(
    name: str, item: Mapping[str, Any], path: tuple[str | int, ...], bounds: tuple[int, int]
) -> int:
    if name not in item:
        raise AttributeProblem(f"the config gives no value for dim '{name}'", path)
    value = item[name]
    low, high = bounds
    if type(value) is not int:
        what = f"{name} = {value!r} is not an integer"
        raise AttributeProblem(what, (*path, name), f"'{name}' goes from {low} to {high}")
    if not low <= value <= high:
        raise AttributeProblem(
            f"config outside the shape space: {name} = {value!r}",
            (*path, name),
            f"'{name}' goes from {low} to {high}",
        )
    return value


def check_dtypes(dtypes: tuple[str, ...]) -> None:
    """Refuse an empty list, and element types that the family does not support.

    Raises AttributeProblem.
    """
    if not dtypes:
        raise AttributeProblem("no dtypes: a task needs at least one", ("dtypes",))
    for index, dtype in enumerate(dtypes):
        if dtype in dtypes[:index]:
            raise AttributeProblem(f"dtype '{dtype}' is declared twice", ("dtypes", index))
        if dtype not in FLOATING:
            raise AttributeProblem(
                f"unknown dtype '{dtype}'", ("dtypes", index), f"known: {', '.join(FLOATING)}"
            )
