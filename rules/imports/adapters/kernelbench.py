"""KernelBench: ``class Model`` with ``get_inputs`` and ``get_init_inputs``; answers ``ModelNew``.

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
    from imported.models import Models
    from torch import Generator, Tensor

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "library"))

TERMS = {"licence": "MIT", "redistribute": True}
MARK = "KernelBench/level1"
"""What a checkout of this benchmark has."""


def tasks(root: Path) -> Iterator[dict[str, Any]]:
    """All problems of levels 1 to 4, by level and number."""
    for path in sorted(root.glob("KernelBench/level[1-4]/*.py"), key=_number):
        level, stem = path.parent.name, re.sub(r"[^\w.+=-]", "_", path.stem)
        file = path.relative_to(root).as_posix()
        yield {"name": f"{level}/{stem}", "files": [file], "tags": [level]}


def capture(name: str, files: Sequence[str]) -> dict[str, Any]:
    """What the lock says of a task. Raises LeftOutError."""
    return _models().capture(name, files)


def inputs(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The arguments of a call, from the original's own function under a seed."""
    return _models().inputs(config, generator)


def state(config: Mapping[str, Any], generator: Generator) -> dict[str, Tensor]:
    """The weights, from the original's own constructor under a seed."""
    return _models().state(config, generator)


def reference(**given: Any) -> dict[str, Any]:
    """What the original computes from arguments and weights, in their precision."""
    return _models().reference(**given)


def _models() -> Models:
    from imported.models import Models

    return Models(HERE, "kernelbench", "KernelBench")


def _number(path: Path) -> tuple[str, int]:
    found = re.match(r"\d+", path.name)
    return path.parent.name, int(found[0]) if found else 0
