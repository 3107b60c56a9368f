"""A search whose judge reads the answer off the kernel, and whose model answers from a function."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from budget import Budget, Cost, Limits, Prices
from endpoint import EndpointError
from journal import Journal
from judging import Judge
from kabuild_check import Answer as Checked
from kabuild_check import CheckError
from model import Model
from modelled_times import Ranking
from prompts import Task
from protocols import Answer, Question
from search import End, Search, Settings
from transcript import Transcript

CONFIGS: tuple[dict[str, Any], ...] = (
    {"name": "small", "dims": {"n": 8}, "dtype": "f32", "scalars": {}},
    {"name": "large", "dims": {"n": 4096}, "dtype": "f32", "scalars": {}},
)
TASK = Task("double", "double.hip", "# double\ny = 2 x.", "def reference(): ...", CONFIGS, "")
BASE_NS = {"small": 1000.0, "large": 9000.0}


def kernel(speed: float = 1.0, *, fault: str = "", name: str = "k", modelled: int = 0) -> str:
    """A kernel ``speed`` times as fast as the baseline; with a ``fault``, such as WRONG_RESULT."""
    more = f"int fault = {fault};" if fault else ""
    more += f"int modelled = {modelled};" if modelled else ""
    return f"void {name}();  int speed = {speed}; {more}\n"


def reply(source: str) -> str:
    """A proposal."""
    return f"I would do this.\n```cpp\n{source}```\n"


def _speed(source: str) -> float:
    found = re.search(r"speed = ([\d.]+);", source)
    assert found, source
    return float(found[1])


class Gates:
    """The gates. ``asked`` has what they were asked; a kernel that says BREAKS breaks the judge.

    With ``models`` they also model times, as a kernel says them; ``ranked`` has these questions.
    """

    def __init__(self, noise: float = 1.02, *, models: bool = False) -> None:
        self.asked: list[tuple[str, tuple[str, ...], str]] = []
        self.ranked: list[tuple[str, ...]] = []
        self.models = models
        self._noise = noise

    def check(
        self,
        source: str,
        gates: Sequence[str] = ("compile",),
        *,
        budget: float = 0.0,
        against: str = "",
    ) -> Checked:
        self.asked.append((source, tuple(gates), against))
        if "BREAKS" in source:
            raise CheckError("the machine broke", machine=True)
        return Checked(tuple(self._verdicts(source, gates, against)))

    def rank(self, sources: Sequence[str], *, seconds: float) -> Sequence[float | None]:
        """What a kernel says of itself: ``modelled = 9;``."""
        self.ranked.append(tuple(sources))
        if not self.models:
            raise CheckError("nothing models the times", machine=False)
        said = [re.search(r"modelled = (\d+);", source) for source in sources]
        return [float(found[1]) if found else None for found in said]

    def _verdicts(self, source: str, gates: Sequence[str], against: str) -> list[dict[str, Any]]:
        found = re.search(r"fault = (\w+);", source)
        if "perf" in gates:
            ratio = _speed(source) / (_speed(against) if against else 1.0)
            return [{"gate": "perf", "verdict": "PASS", "cases": self._cases(source, ratio)}]
        fault = found[1] if found else ""
        good = {"verdict": "PASS", "reason": "", "summary": "", "detail": ""}
        bad = {"verdict": "FAIL", "reason": fault, "summary": f"it has {fault}", "detail": "see"}
        if fault == "COMPILE_ERROR":
            return [{"gate": "compile", **bad}, {"gate": "correctness", "verdict": "SKIPPED"}]
        resources = {"kernels": [{"name": "k", "registers": 40, "spills": 8}]}
        compiled = {"gate": "compile", **good, **resources}
        return [compiled, {"gate": "correctness", **(bad if fault else good)}]

    def _cases(self, source: str, ratio: float) -> list[dict[str, Any]]:
        return [
            {
                "config": name,
                "candidate_ns": base / _speed(source),
                "baseline_ns": base / _speed(source) * ratio,
                "speedup": ratio,
                "low": ratio / self._noise,
                "high": ratio * self._noise,
                "bytes": 32768,
                "flops": 4096,
                "warm": {"candidate_ns": base / _speed(source) / 2},
            }
            for name, base in BASE_NS.items()
        ]


@dataclass
class Says:
    """An endpoint that answers with what ``says`` makes of a question; a failure is raised."""

    says: Callable[[Question], str | EndpointError]
    asked: list[Question] = field(default_factory=list)

    def ask(self, question: Question) -> Answer:
        self.asked.append(question)
        text = self.says(question)
        if isinstance(text, EndpointError):
            raise text
        return Answer(text, text.endswith("<cut>"), Cost(100, 40, 20))


@dataclass
class World:
    """What one run of a search made."""

    end: End
    kept: list[str]
    figures: dict[str, Any]
    gates: Gates
    endpoint: Says
    entries: list[dict[str, Any]]
    budget: Budget

    @property
    def outcomes(self) -> list[str]:
        return [entry["outcome"] for entry in self.entries if "outcome" in entry]


def run(
    directory: Path,
    says: Callable[[Question], str | EndpointError],
    settings: Settings,
    *,
    original: str | None = None,
    limits: Limits | None = None,
    noise: float = 1.02,
    task: Task = TASK,
    models: bool = False,
) -> World:
    """Run a search with the journal in ``directory``."""
    gates, endpoint = Gates(noise, models=models), Says(says)
    stream, kept = io.StringIO(), list[str]()
    journal = Journal(directory / "journal.jsonl", lambda: 1.0)
    budget = Budget(limits or Limits(), Prices(sent=1.0))
    transcript = Transcript(stream)
    search = Search(
        task,
        kernel() if original is None else original,
        settings,
        model=Model(endpoint, journal, budget, settings.parallel, transcript.usage),
        judge=Judge(gates.check, journal),
        ranking=Ranking(gates.rank, journal),
        journal=journal,
        transcript=transcript,
        exceeded=lambda: budget.exceeded(journal.seconds),
        hand_in=kept.append,
    )
    end = search.run()
    entries = [json.loads(line) for line in stream.getvalue().splitlines()]
    return World(end, kept, search.figures(), gates, endpoint, entries, budget)
