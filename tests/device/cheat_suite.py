"""The candidates of ``cheats/``, each with the verdict that its first lines say."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workplace import Workplace

HERE = Path(__file__).parent / "cheats"
_HEADERS = (HERE / "hip", HERE.parents[1] / "cheats" / "hip")
_FAMILIES = {".hip": "hip2hip", ".py": "triton2triton"}
_NOTHING_GAINED = 1.03
_BUILD = """\
[[{family}]]
name        = "{name}"
kernel      = "doubling{suffix}"
reference   = "reference.py"
brief       = "Double every element of a vector of n floats: one read and one write of each."
entry       = "doubling"
inputs      = {{ x = "T[n]" }}
outputs     = {{ y = "T[n]" }}
dims        = {{ n = "1..67108864" }}
dtypes      = ["f32"]
configs     = [ {{ n = 16777216 }}, {{ n = 1000003 }} ]
flops       = "n"
correctness = {{ call_seconds = 2.0 }}
perf        = {{ max_processes = 3 }}
"""


@dataclass(frozen=True)
class Candidate:
    """One file, and what must come of it: ``correctness FAIL TIMEOUT``, ``perf PASS``.

    ``most`` is what it may gain, where that is limited. ``clock`` is the one by which it must be
    timed; empty where that does not matter.
    """

    path: Path
    gate: str
    verdict: str
    reason: str
    most: float = math.inf
    clock: str = ""

    @classmethod
    def read(cls, path: Path) -> Candidate:
        """The candidate in a file."""
        lines = [line.lstrip("/# ") for line in path.read_text().splitlines()]
        said = {key: value for key, _, value in (line.partition(": ") for line in lines[:4])}
        text, _, words = said["verdict"].partition(", ")
        gate, verdict, *reason = text.split()
        most = _NOTHING_GAINED if words == "gains nothing" else math.inf
        if words.startswith("gains at most "):
            most = float(words.rpartition(" ")[2])
        return cls(path, gate, verdict, " ".join(reason), most, said.get("clock", ""))

    @property
    def package(self) -> str:
        """Where its task is declared; those with the same gates lie together."""
        return f"cheats/{self.gate}/{_FAMILIES[self.path.suffix]}/{self.path.stem}"

    @property
    def timed(self) -> bool:
        """Whether times are what decides."""
        return (self.gate, self.verdict) == ("perf", "PASS")

    def declare(self, workplace: Workplace) -> None:
        """Write its task, with it as the expert's solution."""
        suffix = self.path.suffix
        package = workplace.root / self.package
        (package / "solutions/expert").mkdir(parents=True, exist_ok=True)
        honest = HERE / self.path.parent.name / f"honest{suffix}"
        family, name = _FAMILIES[suffix], self.path.stem
        build = _BUILD.format(family=family, name=name, suffix=suffix)
        (package / "BUILD.toml").write_text(build)
        (package / "reference.py").write_text((HERE / "reference.py").read_text())
        (package / f"doubling{suffix}").write_text(_spliced(honest))
        (package / f"solutions/expert/doubling{suffix}").write_text(_spliced(self.path))


def judge(workplace: Workplace, names: Sequence[str] = ()) -> dict[str, Any]:
    """Judge all of them, or those with these names and the honest ones.

    At last an honest one is judged again: the device must work as before.
    """
    wanted = {*names, "honest"} if names else {path.stem for path in _files()}
    candidates = [Candidate.read(path) for path in _files() if path.stem in wanted]
    for candidate in candidates:
        candidate.declare(workplace)
    found: dict[str, Any] = {}
    for gate, gates in (
        ("correctness", "compile,correctness"),
        ("perf", "compile,correctness,perf"),
    ):
        targets = _test(workplace, f"//cheats/{gate}/...", gates)
        group = [candidate for candidate in candidates if candidate.gate == gate]
        found |= {c.path.name: _outcome(workplace, c, targets) for c in group}
    again = _test(
        workplace, "//cheats/perf/hip2hip/honest", "compile,correctness", "--nocache_test_results"
    )
    verdicts = {entry["gate"]: entry["verdict"] for entry in again}
    found["honest.hip, after all others"] = {
        "got": f"correctness {verdicts.get('correctness')}",
        "as_expected": verdicts.get("correctness") == "PASS",
    }
    return found


def _files() -> list[Path]:
    return sorted([*(HERE / "hip").glob("*.hip"), *(HERE / "triton").glob("*.py")])


def _spliced(path: Path) -> str:
    """The file with the headers of the cheats in place."""

    def content(match: re.Match[str]) -> str:
        return _spliced(next(f for h in _HEADERS if (f := h / match[1]).exists()))

    return re.sub(r'#include "(\w+\.h)"', content, path.read_text())


def _test(workplace: Workplace, pattern: str, gates: str, *flags: str) -> Sequence[Any]:
    ran = workplace.test(pattern, "--agent=expert", f"--gates={gates}", *flags)
    targets: Sequence[Any] = ran.json["targets"]
    return targets


def _outcome(workplace: Workplace, candidate: Candidate, targets: Sequence[Any]) -> dict[str, Any]:
    mine = {
        entry["gate"]: entry
        for entry in targets
        if entry["task"].removeprefix("//").partition(":")[0] == candidate.package
    }
    entry = mine.get(candidate.gate, {})
    expected = " ".join(filter(None, (candidate.gate, candidate.verdict, candidate.reason)))
    got = " ".join(
        filter(None, (candidate.gate, entry.get("verdict", "absent"), entry.get("reason", "")))
    )
    right = got == expected
    label = f"{candidate.package}:{candidate.path.stem}.perf"
    cases = workplace.read(label, "verdict.json").get("cases", []) if candidate.timed else []
    right &= all(case["low"] <= candidate.most for case in cases)
    if candidate.clock:
        right &= all(case["clock"] == candidate.clock for case in cases)
    return {
        "expected": expected
        + (f", gains at most {candidate.most:g}" if candidate.most < math.inf else "")
        + (f", by the clock {candidate.clock}" if candidate.clock else ""),
        "got": got,
        "as_expected": right,
        "summary": entry.get("summary", ""),
        "configs": cases,
        "seconds": entry.get("seconds"),
    }
