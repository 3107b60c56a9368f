"""MultiKernelBench: modules in KernelBench's form, and NPUKernelBench's with a file of cases.

``TERMS``, ``MARK``, ``TASKS`` and ``task`` are for ``kabuild import``: the standard library only.
The rest runs where tasks are captured and judged, beside ``library`` and ``original``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imported.models import Models, Task
    from torch import Generator, Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "library"))

TERMS = {"licence": "MIT", "redistribute": True}
MARK = "reference/matmul"
"""What a checkout of this benchmark has."""
TASKS = ("reference/*/[!_]*.py",)


def task(checkout: Any, path: str) -> dict[str, Any]:
    """One module by category; with its cases if it is one of NPUKernelBench's."""
    del checkout
    home, stem = path.removesuffix(".py"), path.split("/")[1:]
    files = [path, f"{home}.json"] if stem[0].startswith("npukernelbench") else [path]
    return {"name": "/".join(stem).removesuffix(".py"), "files": files, "tags": stem[:1]}


def capture(name: str, files: Sequence[str]) -> dict[str, Any]:
    """The facts of a task for the lock. Raises LeftOutError."""
    from imported.cases import read_cases, with_cases

    facts = _models().capture(name, files)
    if len(files) == 1:
        return facts
    module = read_cases(*(HERE / "original" / file for file in files))
    return {**facts, "attrs": with_cases(facts["attrs"], module)}


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The arguments of a call, from the original's own function under a seed."""
    return _models().inputs(config, generator)


def state(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The weights, from the original's own constructor under a seed."""
    return _models().state(config, generator)


def reference(**given: Any) -> dict[str, Any]:
    """The original's results for arguments and weights, in their precision."""
    return _models().reference(**given)


def _models() -> Models:
    from imported.models import Models

    return Models(HERE, "multikernelbench", "MultiKernelBench", read=_read)


def _read(files: Sequence[Path]) -> Task:
    from imported.cases import read_cases
    from imported.models import read_task

    return read_cases(*files) if len(files) > 1 else read_task(files)
