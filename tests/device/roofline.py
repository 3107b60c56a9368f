"""How much of the device each expert uses on its visible configs."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

_SIZES = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "i64": 8, "i32": 4, "i8": 1, "u8": 1, "bool": 1}
_TENSOR = re.compile(r"(\w+)\[(.*)\]")
_MATRICES = "matmul"


def shares(
    root: Path,
    suite: Mapping[str, Any],
    limits: Mapping[str, Any],
    copies: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, Any]:
    """By task: what share of a copy's bytes a second, or of the vendor's speed, is reached.

    Args:
        root: the repository.
        suite: by task its perf cases.
        limits: of the device, as ``side_by_side.device_limits`` has them.
        copies: of as many bytes as largest configs move, as ``copies.measure`` has them.
    """
    found = {}
    for label, task in tasks(root):
        cases = {case["config"]: case for case in suite.get(label, {}).get("configs", ())}
        if cases:
            of = _of_vendor if _MATRICES in task["tags"] else _of_copy
            found[label] = of(task, cases, limits)
            for share in found[label].values():
                if share.get("largest") and label in copies:
                    copy_us = copies[label]["copy_us"]
                    share |= {"copy_us": copy_us, "of_equal_copy": copy_us / share["expert_us"]}
    return found


def products(root: Path) -> list[tuple[str, tuple[int, int, int]]]:
    """What tasks multiply: the dtype, and (m, n, k)."""
    return [
        (dtype(task, config), _size(config))
        for _, task in tasks(root)
        if _MATRICES in task["tags"]
        for config in task["configs"]
    ]


def moved(root: Path) -> dict[str, int]:
    """By task that is bound by memory, the bytes of its largest config."""
    return {
        label: max(_bytes(task, config) for config in task["configs"])
        for label, task in tasks(root)
        if _MATRICES not in task["tags"]
    }


def product_name(dtype: str, size: Sequence[int]) -> str:
    """What a matrix product is called in the limits."""
    return f"{dtype} {'x'.join(map(str, size))}"


def tasks(root: Path) -> list[tuple[str, Mapping[str, Any]]]:
    """The label and the declaration of every task below ``root`` that has an expert."""
    found = []
    for file in sorted((root / "tasks").glob("*/*/BUILD.toml")):
        if not (file.parent / "solutions/expert").is_dir():
            continue
        (task,) = next(iter(tomllib.loads(file.read_text()).values()))
        found.append((f"//{file.parent.relative_to(root)}", task))
    return found


def _of_vendor(
    task: Mapping[str, Any], cases: Mapping[str, Any], limits: Mapping[str, Any]
) -> dict[str, Any]:
    """All configs, for a library is not equally good at all."""
    found = {}
    for config in task["configs"]:
        name = named(task, config, cases)
        product = limits["matrix_products"][product_name(dtype(task, config), _size(config))]
        taken_us = cases[name]["candidate_ns"] / 1e3
        found[name] = {
            "expert_us": round(taken_us, 2),
            "vendor_us": product["median_us"],
            "share_of_vendor": round(product["median_us"] / taken_us, 3),
        }
    return found


def _size(config: Mapping[str, Any]) -> tuple[int, int, int]:
    return config["m"], config["n"], config["k"]


def _of_copy(
    task: Mapping[str, Any], cases: Mapping[str, Any], limits: Mapping[str, Any]
) -> dict[str, Any]:
    """All configs; the largest is what counts."""
    found = {}
    largest = max(_bytes(task, config) for config in task["configs"])
    for config in task["configs"]:
        name = named(task, config, cases)
        taken_us = cases[name]["candidate_ns"] / 1e3
        moved = _bytes(task, config)
        share = moved / (taken_us * 1e-6) / limits["copy"]["bytes_per_second"]
        found[name] = {
            "expert_us": round(taken_us, 2),
            "bytes": moved,
            "share_of_copy": round(share, 3),
            "largest": moved == largest,
        }
    return found


def named(task: Mapping[str, Any], config: Mapping[str, Any], cases: Mapping[str, Any]) -> str:
    """The name that the judge has for a config: its dtype and dims, in whatever order."""
    wanted = {dtype(task, config), *(f"{dim}={config[dim]}" for dim in task["dims"])}
    return next(name for name in cases if wanted <= set(name.split()))


def dtype(task: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """What ``T`` stands for in a config."""
    return str(config.get("dtype", task["dtypes"][0]))


def _bytes(task: Mapping[str, Any], config: Mapping[str, Any]) -> int:
    """All inputs and outputs, each once."""
    dims = {dim: config[dim] for dim in task["dims"]}
    total = 0
    for text in (*task["inputs"].values(), *task["outputs"].values()):
        kind, shape = tensor(text, dtype(task, config), dims)
        total += _SIZES[kind] * math.prod(shape)
    return total


def tensor(text: str, own: str, dims: Mapping[str, int]) -> tuple[str, tuple[int, ...]]:
    """The dtype and the shape of ``T[rows, 2 * cols]``, where ``T`` is ``own``."""
    match = _TENSOR.fullmatch(text)
    assert match is not None, text
    extents = match[2].split(",")
    shape = tuple(eval(extent, {"__builtins__": {}}, dict(dims)) for extent in extents)
    return own if match[1] == "T" else match[1], shape
