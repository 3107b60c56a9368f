"""MultiKernelBench: modules in KernelBench's form, and NPUKernelBench's with a file of cases.

``tasks``, ``TERMS`` and ``MARK`` are read by ``kabuild import`` and need the standard library only.
The rest runs where tasks are captured and judged, beside ``library`` and ``original``.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
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


def tasks(root: Path) -> Iterator[dict[str, Any]]:
    """All modules by category; those of NPUKernelBench with their cases."""
    for path in sorted(root.glob("reference/*/[!_]*.py"), key=_order):
        category, stem = path.parent.name, re.sub(r"[^\w.+=-]", "_", path.stem)
        files = [path]
        if category.startswith("npukernelbench"):
            files.append(path.with_suffix(".json"))
        yield {
            "name": f"{category}/{stem}",
            "files": [file.relative_to(root).as_posix() for file in files],
            "tags": [category],
        }


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


def _order(path: Path) -> tuple[str, int, str]:
    found = re.match(r"\d+", path.name)
    return path.parent.name, int(found[0]) if found else 0, path.name
