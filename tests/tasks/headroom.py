"""How much faster a task's kernels can become on an H200, by what ``results/h200`` has measured.

The roof of a config is the time in which the device copies as many bytes as the config reads and
writes at least, or in which it does its arithmetic, whichever is longer. Outputs that are read
again can be faster than a copy, so that a share may exceed 1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from tests.tasks.declared import REPOSITORY, Declared

RESULTS = REPOSITORY / "results" / "h200"
_PARTIAL = {"gather", "embedding"}
_MEASURED = ("suite.json", "experts.json")
_GIVEN = "given.json"
_VECTORS = 67e12
_MATRICES = {"f16": 989e12, "bf16": 989e12, "f8e4m3": 1979e12, "f8e5m2": 1979e12}
"""Operations a second, dense, from the vendor's data sheet. All other types count as float32."""


@dataclass(frozen=True)
class Headroom:
    """What is known of the config that takes longest at the roof.

    Attributes:
        roof_ns: the shortest time that the device's bandwidth and arithmetic allow.
        given_ns: the time of the given kernel, or of PyTorch where that is the starting point.
        best_ns: the best known time; None where no expert was measured.
    """

    config: str
    roof_ns: float
    given_ns: float
    best_ns: float | None = None

    @property
    def given(self) -> float:
        """The share of the roof that the starting point reaches."""
        return self.roof_ns / self.given_ns

    @property
    def best(self) -> float | None:
        """The share of the roof that the best known solution reaches."""
        return self.roof_ns / self.best_ns if self.best_ns else None


def headroom(task: Declared) -> Headroom | None:
    """The headroom of a task; None if nobody has measured it.

    Nor is it known of tasks that read only a part of their inputs, such as rows of a table.
    """
    if _PARTIAL & set(task.tags):
        return None
    if cases := _cases().get(task.label):
        return max((_judged(case, task) for case in cases), key=lambda one: one.roof_ns)
    alone = _given().get(task.label)
    if not alone or "given_ns" not in alone or alone["host"]:
        return None
    return _headroom(alone, task, alone["given_ns"])


def _judged(case: Mapping[str, Any], task: Declared) -> Headroom:
    given = case["baseline_ns"]
    return _headroom(case, task, given, min(case["candidate_ns"], given))


def _headroom(
    case: Mapping[str, Any], task: Declared, given_ns: float, best_ns: float | None = None
) -> Headroom:
    roof = roof_ns(case["config"], case["bytes"], case["flops"], matrices=task.multiplies)
    return Headroom(case["config"], roof, given_ns, best_ns)


def roof_ns(config: str, moved: float, flops: float, *, matrices: bool) -> float:
    """The roof of a config, by its name, and the bytes and operations of a call."""
    peak = _MATRICES.get(config.partition(" ")[0], _VECTORS) if matrices else _VECTORS
    return 1e9 * max(moved / _copied_a_second(), flops / peak)


@cache
def _cases() -> Mapping[str, list[Mapping[str, Any]]]:
    """By task, the figures of its configs; the later file counts."""
    found = {}
    for name in _MEASURED:
        for label, task in json.loads((RESULTS / name).read_bytes())["tasks"].items():
            found[label] = task["configs"]
    return found


@cache
def _given() -> Mapping[str, Mapping[str, Any]]:
    """By task, the time of its given kernel alone, on the config that takes longest at the roof."""
    tasks: Mapping[str, Mapping[str, Any]] = json.loads((RESULTS / _GIVEN).read_bytes())["tasks"]
    return tasks


@cache
def _copied_a_second() -> float:
    """The bytes that a copy of 2 GiB reads and writes in a second, on that device."""
    limits: Mapping[str, Any] = json.loads((RESULTS / "side_by_side.json").read_bytes())
    return float(limits["device"]["copy"]["bytes_per_second"])
