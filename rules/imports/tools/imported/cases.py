"""Tasks with a file of cases: one JSON object a line, with the ``inputs`` of a call.

One case is chosen, and its sizes are a module's integers; others with the same sizes and other
values are its configs.
"""

from __future__ import annotations

import copy
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from imported.boundary import LeftOutError
from imported.constants import LEAST, read_module, with_dims
from imported.fitting import evaluate

LARGEST = 1 << 24
"""Elements of the chosen case's tensors, where there is one below it."""

Case = dict[str, Any]


@dataclass(frozen=True)
class CaseModule:
    """A module whose ``get_input_groups`` reads its cases from a file.

    Attributes:
        case: the chosen one.
        others: the file's cases.
    """

    path: Path
    case: Case
    others: tuple[Case, ...]
    values: tuple[int, ...]
    names: tuple[str, ...]
    origin: str

    def load(self, values: Sequence[int]) -> dict[str, Any]:
        """The module's names; its file has one case, with ``values`` as sizes."""
        text = json.dumps(_with_sizes(self.case, values)) + "\n"
        names: dict[str, Any] = {"__name__": "imported_task", "__file__": str(self.path)}
        names["open"] = lambda *_, **__: io.StringIO(text)
        exec(compile(self.path.read_text(), self.path.name, "exec"), names)  # noqa: S102 - the task's own code
        names["get_inputs"] = lambda: names["get_input_groups"]()[0]
        return names

    def configs(self, members: Mapping[str, Sequence[int]]) -> Iterator[dict[str, int]]:
        """The sizes of the cases that differ from the chosen one in these dims alone."""
        for case in self.others:
            sizes = [sizes[axis] for sizes, axis, _ in _places(case, self.case)]
            if len(sizes) != len(self.values):
                continue
            config = {name: sizes[indices[0]] for name, indices in members.items()}
            if _with_sizes(self.case, with_dims(self.values, members, config)) == case:
                yield config


def read_cases(path: Path, cases: Path) -> CaseModule:
    """The module at ``path`` with the largest of its single-precision cases.

    Raises LeftOutError for a file without cases.
    """
    found: list[Case] = []
    for line in cases.read_text().splitlines():
        if not line.strip():
            continue
        try:
            case = json.loads(line)
            [*_sizes(case)]
            found.append(case)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    if not found:
        raise LeftOutError("NO_ENTRY", f"{cases.name} has no case that can be read")
    chosen = max(found, key=_rank)
    places = [*_places(chosen, chosen)]
    return CaseModule(
        path,
        chosen,
        tuple(found),
        tuple(sizes[axis] for sizes, axis, _ in places),
        tuple(name for _, _, name in places),
        read_module(path, functions=(), of="Model").origin,
    )


def with_cases(attrs: dict[str, Any], module: CaseModule) -> dict[str, Any]:
    """A declaration with the file's cases as configs, where its shape space has them."""
    low, high = {}, {}
    for name, text in attrs["dims"].items():
        low[name], high[name] = map(int, text.split(".."))
    configs = list(attrs["configs"])
    for config in module.configs(attrs["parameters"]["members"]):
        fits = all(size >= low[name] for name, size in config.items())
        if config not in configs and fits and all(evaluate(w, config) for w in attrs["where"]):
            configs.append(config)
            high = {name: max(size, config[name]) for name, size in high.items()}
    dims = {name: f"{low[name]}..{high[name]}" for name in low}
    return {**attrs, "configs": configs, "dims": dims}


def _rank(case: Case) -> tuple[bool, bool, int]:
    """Single precision before other kinds, then sizes that can be computed, then large ones."""
    kinds = {str(i.get("dtype")) for i in case["inputs"] if str(i.get("type")).startswith("tensor")}
    elements = sum(prod(sizes) for _, sizes in _sizes(case))
    fits = elements <= LARGEST
    return "float16" not in kinds and "bfloat16" not in kinds, fits, elements if fits else -elements


def _sizes(case: Case) -> Iterator[tuple[str, list[int]]]:
    """The shapes of a case by their tensors' names."""
    for item in case["inputs"]:
        many = item.get("shapes") or [item.get("shape")]
        for shape in many:
            if isinstance(shape, list) and all(type(size) is int for size in shape):
                yield str(item["name"]), shape


def _places(case: Case, like: Case) -> Iterator[tuple[list[int], int, str]]:
    """Where ``case`` has the sizes that may be dims of ``like``: a shape, an axis and a name."""
    for (name, sizes), (_, known) in zip(_sizes(case), _sizes(like), strict=False):
        for axis, size in enumerate(known):
            if size >= LEAST and axis < len(sizes):
                yield sizes, axis, f"{name}_{axis}"


def _with_sizes(case: Case, values: Sequence[int]) -> Case:
    moved = copy.deepcopy(case)
    for (sizes, axis, _), value in zip([*_places(moved, case)], values, strict=True):
        sizes[axis] = value
    return moved
