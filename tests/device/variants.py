"""Kernels of HIP tasks and variants of them with other numbers of threads, tiles and items.

A variant is its kernel with another value of one constant that its author declared as tunable, or
that is called ``kThreads``. Whether it still computes the same is found out where it is timed.
"""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "toolchains/agents"))

from tunables import Tunable, apply, find
from workplace import ROOT

_HONEST = ROOT / "tests/bench/honest/hip2hip"
_THREADS = re.compile(r"(?m)^(?P<head>constexpr int kThreads = )(?P<value>\d+);")
_VALUES = (64, 128, 256, 512)
GIVEN, EXPERT = "given", "expert"


@dataclass(frozen=True)
class Variant:
    """A kernel of one of our tasks.

    Attributes:
        task: below ``tasks``.
        kind: ``given``, ``expert``, or the name of an honest variant; with what was changed.
    """

    task: str
    kind: str
    text: str = field(repr=False)

    @property
    def name(self) -> str:
        """The package that it is declared in."""
        return f"{self.task.rpartition('/')[2]}_{self.kind}".lower()


def variants(root: Path = ROOT) -> Iterator[Variant]:
    """All of them, those of a task one after the other, its given kernel first."""
    for task, kernels in _sources(root).items():
        for kind, file in kernels.items():
            text = file.read_text()
            yield Variant(task, kind, text)
            for changed, other in _changed(text):
                yield Variant(task, f"{kind}_{changed}", other)


def _sources(root: Path) -> Mapping[str, Mapping[str, Path]]:
    """By task, the kernels that there are."""
    found: dict[str, dict[str, Path]] = {}
    for package in sorted((root / "tasks").glob("*2hip/*")):
        task, file = f"{package.parent.name}/{package.name}", f"{package.name}.hip"
        own = found.setdefault(task, {})
        if package.parent.name == "hip2hip":  # elsewhere what is given computes nothing
            own[GIVEN] = package / file
        if (expert := package / "solutions/expert" / file).exists():
            own[EXPERT] = expert
        for path in sorted((_HONEST / package.name).glob("*.hip")):
            own[path.stem] = path
    return {task: own for task, own in found.items() if own}


def _changed(text: str) -> Iterator[tuple[str, str]]:
    """The kernel with other values: what was changed, and the text."""
    if tunables := find(text):
        yield from _tuned(text, tunables)
    elif match := _THREADS.search(text):
        for value in _VALUES:
            if value != int(match["value"]):
                start, end = match.span("value")
                yield f"t{value}", text[:start] + str(value) + text[end:]


def _tuned(text: str, tunables: tuple[Tunable, ...]) -> Iterator[tuple[str, str]]:
    for values in itertools.product(*(tunable.values for tunable in tunables)):
        chosen = dict(zip(tunables, values, strict=True))
        if any(value != tunable.default for tunable, value in chosen.items()):
            yield "_".join(values), apply(text, chosen)
