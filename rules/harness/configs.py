"""Configs: the points of a task's shape space that are shown to everybody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kabuild.rule import AttributeProblem

from .signature import Signature, read_ranges

_FLOATING = ("f64", "f32", "f16", "bf16")


@dataclass(frozen=True)
class Config:
    """One point: a value for every dim and scalar, and the element type."""

    dims: tuple[tuple[str, int], ...]
    dtype: str
    scalars: tuple[tuple[str, float | int], ...]

    @property
    def name(self) -> str:
        """What people call it: ``f16 rows=4096 cols=1024``."""
        return " ".join((self.dtype, *(f"{name}={value}" for name, value in self.dims)))

    def to_json(self) -> dict[str, Any]:
        """As the judge reads it."""
        return {
            "name": self.name,
            "dims": dict(self.dims),
            "dtype": self.dtype,
            "scalars": dict(self.scalars),
        }


def visible_configs(
    attrs: Mapping[str, Any], signature: Signature, platform: str
) -> tuple[Config, ...]:
    """The configs of one platform: ``platform_configs.<platform>`` or else ``configs``."""
    own = attrs["platform_configs"].get(platform)
    declared = attrs["configs"] if own is None else own
    path = ("configs",) if own is None else ("platform_configs", platform)
    return read_configs(declared, path, attrs, signature)


def read_configs(
    declared: Any, path: tuple[str, ...], attrs: Mapping[str, Any], signature: Signature
) -> tuple[Config, ...]:
    """Validate a list of configs against the shape space. Raises AttributeProblem."""
    if not isinstance(declared, list | tuple) or not declared:
        raise AttributeProblem("no configs: a task needs at least one", path)
    configs = []
    for index, item in enumerate(declared):
        if not isinstance(item, Mapping):
            raise AttributeProblem(f"{item!r} is no config", (*path, index), "write { rows = 64 }")
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
    for key in item:
        if key != "dtype" and key not in ranges and key not in scalars:
            known = ", ".join((*ranges, *scalars, "dtype"))
            raise AttributeProblem(f"unknown dim '{key}'", (*path, key), f"known: {known}")
    dtype = item.get("dtype", dtypes[0])
    if dtype not in dtypes:
        raise AttributeProblem(
            f"dtype '{dtype}' is outside the task's: {', '.join(dtypes)}", (*path, "dtype")
        )
    dims = tuple((name, _read_dim(name, item, path, ranges[name])) for name in ranges)
    values = tuple((name, item.get(name, default)) for name, default in signature.scalars)
    return Config(dims, dtype, values)


def _read_dim(
    name: str, item: Mapping[str, Any], path: tuple[str | int, ...], bounds: tuple[int, int]
) -> int:
    if name not in item:
        raise AttributeProblem(f"the config gives no value for dim '{name}'", path)
    value = item[name]
    low, high = bounds
    if type(value) is not int or not low <= value <= high:
        raise AttributeProblem(
            f"config outside the shape space: {name} = {value!r}",
            (*path, name),
            f"'{name}' goes from {low} to {high}",
        )
    return value


def check_dtypes(dtypes: tuple[str, ...]) -> None:
    """Refuse an empty list and element types that no kernel is written for."""
    if not dtypes:
        raise AttributeProblem("no dtypes: a task needs at least one", ("dtypes",))
    for index, dtype in enumerate(dtypes):
        if dtype not in _FLOATING:
            raise AttributeProblem(
                f"unknown dtype '{dtype}'", ("dtypes", index), f"known: {', '.join(_FLOATING)}"
            )
