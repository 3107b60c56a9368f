"""The declarations of all tasks that ship, read as TOML: no rule is loaded, and nothing is run."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]
STARTER = "starter"
BOUNDS = ("memory-bound", "compute-bound", "latency-bound")


@dataclass(frozen=True)
class Declared:
    """One task: its directory, its family and the table of its ``BUILD.toml``."""

    package: Path
    family: str
    table: Mapping[str, Any] = field(hash=False)

    @property
    def name(self) -> str:
        """The name of the task's target."""
        return str(self.table["name"])

    @property
    def label(self) -> str:
        """The task's label, such as ``//tasks/hip2hip/softmax``."""
        return f"//{self.package.relative_to(REPOSITORY)}"

    @property
    def kernel(self) -> Path:
        """The file that a solution replaces."""
        return self.package / str(self.table["kernel"])

    @property
    def has_expert(self) -> bool:
        """Whether somebody wrote a solution by hand."""
        return (self.package / "solutions/expert" / self.kernel.name).exists()

    @property
    def tags(self) -> tuple[str, ...]:
        """All tags, the pattern first."""
        return tuple(self.table["tags"])

    @property
    def multiplies(self) -> bool:
        """Whether its kernels multiply matrices, which devices have units for."""
        return "matmul" in self.tags or "tl.dot(" in self.kernel.read_text()

    @property
    def bounds(self) -> tuple[str, ...]:
        """The tags that say what bounds the task on a GPU."""
        return tuple(tag for tag in self.tags if tag in BOUNDS)

    @property
    def patterns(self) -> tuple[str, ...]:
        """The other tags, which say what kind of work it is."""
        return tuple(tag for tag in self.tags if tag not in (*BOUNDS, STARTER))

    @property
    def models(self) -> tuple[str, ...]:
        """The public models whose sizes the configs have."""
        return tuple(self.table.get("shapes_from", ()))

    @property
    def own_kernel_runs(self) -> bool:
        """Whether the given kernel computes: that of torch2hip is a skeleton."""
        return self.family != "torch2hip"


@cache
def all_tasks() -> tuple[Declared, ...]:
    """Every task in ``tasks/<family>/<task>``, by family and name."""
    return tuple(
        Declared(file.parent, family, table)
        for file in sorted((REPOSITORY / "tasks").glob("*/*/BUILD.toml"))
        for family, tables in tomllib.loads(file.read_text()).items()
        for table in tables
    )


def starters() -> tuple[Declared, ...]:
    """The tasks that ``make demo`` judges."""
    return tuple(task for task in all_tasks() if STARTER in task.tags)
