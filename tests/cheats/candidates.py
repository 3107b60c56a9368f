"""The cheats of this directory and their benign twins, as their files describe them.

A candidate begins with comments: what it does, then how it is judged.

    // Writes before its output.
    // verdict: correctness REJECTED OUT_OF_BOUNDS, before the start
    // twin: writes_in_two_halves

The verdict names the gate that decides, its verdict and reason, and words of its summary. A cheat
that passes must gain nothing: ``perf PASS, gains nothing``. Where the judge's random choices decide
which check finds a cheat first, ``or: FAIL INCOMPLETE_OUTPUT`` names another verdict of that gate.
A twin says ``passes:`` with the gates after ``compile`` that it must pass. A candidate that needs
more calls than a short measurement has says so by ``timing: min_batch_ms = 30``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.testkit.cli import CliWorkspace

HERE = Path(__file__).parent
Language = Literal["hip", "triton"]
SUFFIXES: dict[Language, str] = {"hip": ".hip", "triton": ".py"}
FAMILIES: dict[Language, str] = {"hip": "hip2hip", "triton": "triton2triton"}
INCLUDE = r'#include "(\w+\.h)"'
FIELDS = ("verdict", "or", "twin", "passes", "timing")
GATES = ("compile", "correctness", "perf", "unseen")
GAIN = 2.0  # what equal programs cannot differ by, even on a busy machine

BUILD = """\
[[{family}]]
name      = "{name}"
kernel    = "softmax{suffix}"
reference = "reference.py"
brief     = "Softmax of each row."
entry     = "softmax"
inputs    = {{ x = "T[rows, cols]" }}
outputs   = {{ y = "T[rows, cols]" }}
scalars   = {{ scale = 1.0 }}
dims      = {{ rows = "1..4096", cols = "1..131072" }}
dtypes    = ["f32"]
configs   = [ {configs} ]
limits    = {{ cpu = {{ elements = {elements} }} }}
flops     = "4 * rows * cols"
correctness = {{ edges = 4, repeats = 2{call_seconds} }}
perf      = {{ max_processes = 3, {timing} }}
"""
CONFIGS: dict[Language, str] = {
    "hip": "{ rows = 48, cols = 256 }, { rows = 7, cols = 96 }",
    "triton": "{ rows = 12, cols = 96 }, { rows = 3, cols = 40 }",
}
ELEMENTS: dict[Language, int] = {"hip": 4096, "triton": 512}
SHORT = "budget_seconds = 0.5"
LONG = "budget_seconds = 2.0"  # no such batch looks like a check's, nor half of it like noise
CALL_SECONDS: dict[Language, str] = {"hip": ", call_seconds = 0.5", "triton": ""}
REFERENCE = """\
import torch


def inputs(config, generator):
    x = 2 * torch.randn(config["rows"], config["cols"], generator=generator)
    return {"x": x.to(config["dtype"])}


def reference(x, scale, **_):
    return {"y": torch.softmax(x * scale, dim=-1)}
"""


@dataclass(frozen=True)
class Expected:
    """How a cheat is judged."""

    gate: str
    verdict: str
    reason: str
    words: str


@dataclass(frozen=True)
class Candidate:
    """One file: a cheat, with what must come of it, or a twin, with the gates that it passes."""

    language: Language
    path: Path
    expected: Expected | None
    twin: str
    passes: tuple[str, ...]
    alternatives: frozenset[tuple[str, str]]
    timing: str = ""

    @property
    def name(self) -> str:
        """Its file name without the suffix."""
        return self.path.stem

    @property
    def package(self) -> str:
        """Where its task is declared; candidates for the same gates lie together."""
        last = self.expected.gate if self.expected else "_".join(self.passes)
        return f"{last}/{self.language}/{'cheat' if self.expected else 'twin'}_{self.name}"

    @property
    def gates(self) -> tuple[str, ...]:
        """The gates that it is put through."""
        if self.expected is None:
            return ("compile", *self.passes)
        judged = ("compile", "correctness")
        return judged if self.expected.gate in judged else (*judged, self.expected.gate)

    @property
    def lies_about_time(self) -> bool:
        """Whether only clocks can tell."""
        return self.expected is not None and self.expected.reason == "CLOCK_MISMATCH"

    @property
    def fails_when_timed(self) -> bool:
        """Whether it is as good as honest before."""
        expected = self.expected
        return expected is not None and expected.gate == "perf" and expected.verdict != "PASS"

    @property
    def refusals(self) -> set[tuple[str, str]]:
        """The verdicts that a cheat may get, with their reasons.

        Who works at another time than it says may also be found by the call that is left out at a
        random place: its output is right all the same. Who keeps a result may have kept that of
        such a call, which nobody wrote.
        """
        expected = self.expected
        assert expected is not None
        also = set(self.alternatives)
        if self.lies_about_time:
            also.add(("REJECTED", "KERNEL_BYPASSED"))
        elif expected.reason == "WRONG_RESULT":
            also.add(("FAIL", "INCOMPLETE_OUTPUT"))
        return {(expected.verdict, expected.reason), *also}

    def source(self) -> str:
        """What is handed in: the file, with this directory's headers in place."""
        return spliced(self.path.read_text(), self.path)


def spliced(text: str, path: Path) -> str:
    """``text`` with the headers that it includes from the directory of cheats."""
    seen: set[str] = set()

    def content(match: re.Match[str]) -> str:
        if match[1] in seen:
            return ""
        seen.add(match[1])
        return (HERE / "hip" / match[1]).read_text()

    while path.suffix == ".hip" and re.search(INCLUDE, text):  # headers include others
        text = re.sub(INCLUDE, content, text, count=1)
    return text


def honest(language: Language) -> str:
    """The kernel that is the baseline of every candidate in ``language``."""
    path = HERE / language / f"softmax{SUFFIXES[language]}"
    return spliced(path.read_text(), path)


def cheats(language: Language) -> list[Candidate]:
    """All cheats in one language."""
    files = sorted((HERE / language).glob(f"*{SUFFIXES[language]}"))
    return [_read(language, file) for file in files if file.stem != "softmax"]


def twins(language: Language) -> list[Candidate]:
    """All benign twins in one language."""
    files = sorted((HERE / language / "twins").glob(f"*{SUFFIXES[language]}"))
    return [_read(language, file) for file in files]


def open_cheats(language: Language) -> list[Candidate]:
    """Cheats that still work, as SECURITY.md says."""
    files = sorted((HERE / language / "open").glob(f"*{SUFFIXES[language]}"))
    return [_read(language, file) for file in files]


def declare(workspace: CliWorkspace, candidate: Candidate, timing: str = "") -> None:
    """Write the task of one candidate, with it as the expert's solution; timed as it needs."""
    language, package = candidate.language, candidate.package
    suffix = SUFFIXES[language]
    budget = LONG if candidate.fails_when_timed else SHORT
    build = BUILD.format(
        family=FAMILIES[language],
        name=package.rpartition("/")[2],
        suffix=suffix,
        configs=CONFIGS[language],
        elements=ELEMENTS[language],
        call_seconds=CALL_SECONDS[language],
        timing=", ".join(filter(None, (timing or budget, candidate.timing))),
    )
    workspace.write(f"{package}/BUILD.toml", build)
    workspace.write(f"{package}/softmax{suffix}", honest(language))
    workspace.write(f"{package}/reference.py", REFERENCE)
    workspace.write(f"{package}/solutions/expert/softmax{suffix}", candidate.source())


def _read(language: Language, path: Path) -> Candidate:
    lines = [line.lstrip("/# ") for line in path.read_text().splitlines() if line[:1] in "/#"]
    pairs = [line.split(": ", 1) for line in lines if line.partition(":")[0] in FIELDS]
    fields = dict(pairs)
    expected = _expected(fields["verdict"]) if "verdict" in fields else None
    passes = tuple(fields.get("passes", "").split())
    others = [value.split() for field, value in pairs if field == "or"]
    alternatives = frozenset((verdict, reason) for verdict, reason in others)
    twin, timing = fields.get("twin", ""), fields.get("timing", "")
    return Candidate(language, path, expected, twin, passes, alternatives, timing)


def _expected(text: str) -> Expected:
    verdict, _, words = text.partition(", ")
    gate, outcome, *reason = verdict.split()
    return Expected(gate, outcome, " ".join(reason), words)
