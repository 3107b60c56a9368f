"""Soft verification: a model reviews a proposal before the gates run it.

It answers three questions: does the proposal compile, does it access only permitted memory, are its
results correct? It never has the last word: what it approves still goes through the gates. What it
rejects is left out only while its rejections are right often enough; a part of them, drawn by the
seed, goes to the gates all the same, to measure that.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from judging import Judgement

QUESTIONS = ("compile", "memory", "numerics")
AUDITED = 0.25
"""The share of rejections that are judged instead of left out."""

LEAST = 6
"""The number of rejections that are judged before any is trusted."""

TRUSTED, HOPELESS = 0.8, 0.5
"""The shares of right rejections from which they are trusted, and below which reviews end."""

_MEMORY = {"OUT_OF_BOUNDS", "CRASH", "INPUT_MUTATED", "INCOMPLETE_OUTPUT", "LAUNCH_ERROR"}
_NUMERICS = {"WRONG_RESULT", "NON_FINITE", "NONDETERMINISTIC"}
_LINE = re.compile(r"^\W*(compile|memory|numerics)\W+(ok|wrong)\b", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Opinion:
    """The model's review: whether each question is answered ok; no entry without an answer."""

    says: Mapping[str, bool] = field(default_factory=dict, hash=False)

    @property
    def rejects(self) -> bool:
        """Whether it found an error."""
        return not all(self.says.values())

    @classmethod
    def read(cls, text: str) -> Opinion:
        """Read from a reply; the last answer to each question counts."""
        return cls({name.lower(): word.lower() == "ok" for name, word in _LINE.findall(text)})


def truth(judged: Judgement) -> dict[str, bool]:
    """The gates' answers to the three questions; without those that they did not reach."""
    if judged.problem:
        return {}
    if judged.is_right:
        return dict.fromkeys(QUESTIONS, True)
    failed = judged.failed
    if failed is not None and failed["gate"] == "compile":
        return {"compile": False}
    found = {"compile": True}
    if judged.reason in _MEMORY:
        found["memory"] = False
    if judged.reason in _NUMERICS:
        found["numerics"] = False
    return found


class SoftVerifier:
    """Statistics of its reviews. ``seed`` draws the rejections that are judged all the same."""

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._counts: dict[str, Counter[str]] = {name: Counter() for name in (*QUESTIONS, "any")}
        self._left_out = 0

    @property
    def is_asked(self) -> bool:
        """Whether its reviews are useful, as far as is known."""
        share = self._right_rejections()
        return share is None or share >= HOPELESS

    @property
    def is_believed(self) -> bool:
        """Whether its rejections have been right often enough."""
        share = self._right_rejections()
        return share is not None and share >= TRUSTED

    def leaves_out(self, opinion: Opinion, slot: str) -> bool:
        """Whether the gates may skip the proposal of this review."""
        drawn = random.Random(f"{self._seed}.{slot}").random()  # noqa: S311 - a draw, no secret
        left_out = opinion.rejects and self.is_believed and drawn >= AUDITED
        self._left_out += left_out
        return left_out

    def learn(self, opinion: Opinion, judged: Judgement) -> None:
        """Compare a review with the gates' verdicts."""
        known = truth(judged)
        for name in QUESTIONS:
            if name in known and name in opinion.says:
                self._counts[name][_cell(opinion.says[name], known[name])] += 1
        if opinion.says and not judged.problem:
            self._counts["any"][_cell(not opinion.rejects, judged.is_right)] += 1

    def figures(self) -> dict[str, object]:
        """Confusion matrices by question, with the share of right answers of each."""
        matrices = {
            name: {
                **{cell: counts[cell] for cell in _CELLS},
                "accuracy": _accuracy(counts),
            }
            for name, counts in self._counts.items()
        }
        return {
            "matrices": matrices,
            "left_out": self._left_out,
            "believed": self.is_believed,
            "asked": self.is_asked,
        }

    def _right_rejections(self) -> float | None:
        """The share of right rejections, once there are enough of them."""
        counts = self._counts["any"]
        right, wrong = counts["wrong_and_said_so"], counts["right_but_said_wrong"]
        return right / (right + wrong) if right + wrong >= LEAST else None


_CELLS = ("right_and_said_so", "wrong_and_said_so", "right_but_said_wrong", "wrong_but_said_right")


def _cell(said: bool, was: bool) -> str:  # noqa: FBT001 - two sides of a matrix
    if said == was:
        return "right_and_said_so" if was else "wrong_and_said_so"
    return "right_but_said_wrong" if was else "wrong_but_said_right"


def _accuracy(counts: Counter[str]) -> float | None:
    total = sum(counts.values())
    good = counts["right_and_said_so"] + counts["wrong_and_said_so"]
    return round(good / total, 4) if total else None
