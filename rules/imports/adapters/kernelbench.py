"""KernelBench: ``class Model`` with ``get_inputs`` and ``get_init_inputs``; answers ``ModelNew``.

``TERMS``, ``MARK``, ``TASKS`` and ``task`` are for ``kabuild import``: the standard library only.
The rest runs where tasks are captured and judged, beside ``library`` and ``original``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imported.models import Models
    from torch import Generator, Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "library"))

TERMS = {"licence": "MIT", "redistribute": True}
MARK = "KernelBench/level1"
"""What a checkout of this benchmark has."""
TASKS = ("KernelBench/level[1-4]/*.py",)

_CHECK = "src/kernelbench/eval.py"
Answer = Callable[[Callable[..., Any]], Callable[..., Any]]


def task(checkout: Any, path: str) -> dict[str, Any]:
    """One problem, by level and number."""
    _, level, file = path.split("/")
    check = [_CHECK] * checkout.has(_CHECK)
    name = f"{level}/{file.removesuffix('.py')}"
    return {"name": name, "files": [path, *check], "tags": [level]}


def capture(name: str, files: Sequence[str]) -> dict[str, Any]:
    """The facts of a task for the lock. Raises LeftOutError."""
    facts = _models().capture(name, files[:1])
    return {**facts, "attrs": {**facts["attrs"], "check": [*files[1:]]}}


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The arguments of a call, from the original's own function under a seed."""
    return _models().inputs(config, generator)


def state(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The weights, from the original's own constructor under a seed."""
    return _models().state(config, generator)


def reference(**given: Any) -> dict[str, Any]:
    """The original's results for arguments and weights, in their precision."""
    return _models().reference(**given)


def original(config: Mapping[str, Any], seeds: Mapping[str, int]) -> dict[str, Any]:
    """The original's draws under these seeds, and its results."""
    from imported.original_models import original

    names, told = _original(config)
    return original(names, told["inputs"], seeds)


def original_check(config: Mapping[str, Any], seed: int, answer: Answer) -> str:
    """The complaint of KernelBench's check about a candidate; "" if it passes."""
    from imported.original_models import original_check

    return original_check(HERE / "original" / _CHECK, _original(config)[0], seed, answer)


def _original(config: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    from imported.original_models import read_original

    told = json.loads((HERE / "parameters.json").read_text())
    file = HERE / "original" / told["files"][0]
    return read_original(file, told["members"], config), told


def _models() -> Models:
    from imported.models import Models

    return Models(HERE, "kernelbench", "KernelBench")
