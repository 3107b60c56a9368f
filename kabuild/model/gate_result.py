"""The result of one gate of one task: from a build, or from a stored verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from kabuild.model.gate import Gate
from kabuild.model.label import Label
from kabuild.model.result import Outcome, Settled
from kabuild.model.verdict import Verdict

_VERDICTS: Mapping[str, Verdict] = Verdict.__members__
_AGAINST = frozenset({Verdict.FAIL, Verdict.REJECTED})
_BEGIN, _END, _MOST_COLUMNS = 2, 2, 200
"""Lines of a long message that its summary keeps:

the first, which say what happened, and the last, where a traceback names its error.
"""


@dataclass(frozen=True)
class GateResult:
    """The result of one gate of one task. Two are equal if they say the same.

    Attributes:
        label: of the gate's action.
        declared: the gate, as its rule declares it; its name is empty for other actions.
        word: its verdict or, if nothing was judged, how the action ended: ``INFRA``, ``CANCELLED``.
            In a foreign bundle it may be any text.
        reason: why, machine-readable; empty on PASS.
        summary, detail: for people, one line and several.
        note: how several runs of this gate differed; empty if they did not.
        data: the whole ``verdict.json``.
        key: SHA-256 of everything that the result depends on; empty if unknown.
        cached: whether the result came from the cache.
        hermetic: whether it ran in a sandbox.
        seconds: wall time that this build spent on it; ``run_seconds``: of the run that made the
            result, None if unknown.
        cause: the action that kept this gate from judging, perhaps its own.
    """

    label: Label
    declared: Gate
    word: str
    reason: str = ""
    summary: str = ""
    detail: str = ""
    note: str = ""
    data: Mapping[str, Any] = field(default_factory=dict, compare=False)
    key: str = field(default="", compare=False)
    cached: bool = field(default=False, compare=False)
    hermetic: bool = field(default=True, compare=False)
    seconds: float = field(default=0.0, compare=False)
    run_seconds: float | None = field(default=None, compare=False)
    cause: Label | None = None

    @classmethod
    def of(cls, gate: Gate, item: Settled, stopper: Settled | None = None) -> Self:
        """From an action of a build. ``stopper`` is the action that ``item.stopped_by`` names."""
        verdict, ran = item.verdict, item.result
        broken = _broken(stopper or item)
        summary, detail, note = item.message, item.message, ""
        if broken:
            detail = broken.message if broken.label == item.label else broken.account
            summary = _in_one_line(detail)
        elif verdict:
            summary, detail = verdict.summary, verdict.detail
            note = item.message if item.outcome is Outcome.DONE else ""
        return cls(
            label=item.label,
            declared=gate,
            word=verdict.verdict.value if verdict else item.outcome.value.upper(),
            reason=verdict.reason if verdict else item.fault,
            summary=summary,
            detail=detail,
            note=note,
            data=verdict.data if verdict else {},
            key=item.key.hash if item.key else "",
            cached=item.cached,
            hermetic=ran is None or ran.hermetic,
            seconds=item.seconds,
            run_seconds=ran.seconds if ran else None,
            cause=item.stopped_by or (broken.label if broken else None),
        )

    @classmethod
    def read(cls, label: Label, gate: Gate, said: Mapping[str, Any], key: str = "") -> Self:
        """From a stored ``verdict.json``, or the known part of one."""
        return cls(
            label=label,
            declared=gate,
            word=str(said.get("verdict")),
            reason=str(said.get("reason") or ""),
            summary=str(said.get("summary") or ""),
            detail=str(said.get("detail") or ""),
            data=said,
            key=key,
        )

    def __str__(self) -> str:
        """What people read: the gate, its verdict with the reason, and why."""
        told = f"{self.label} {self.title}"
        if self.headline:
            told += f": {self.headline}"
        return f"{told}\n{self.beyond_headline}" if self.beyond_headline else told

    @property
    def gate(self) -> str:
        """The gate's name; empty for other actions."""
        return self.declared.name

    @property
    def verdict(self) -> Verdict | None:
        """The verdict; None if nothing was judged."""
        return _VERDICTS.get(self.word)

    @property
    def passed(self) -> bool:
        """Whether it said PASS."""
        return self.word == Verdict.PASS.value

    @property
    def failed(self) -> bool:
        """Whether the verdict is FAIL or REJECTED."""
        return self.verdict in _AGAINST

    @property
    def broken(self) -> bool:
        """Whether an infrastructure failure kept it from judging."""
        return self.word == Outcome.INFRA.value.upper()

    @property
    def findings(self) -> Mapping[str, tuple[str, ...]]:
        """What it found and does not judge: by kind, what shows it. Empty if damaged."""
        found: dict[str, tuple[str, ...]] = {}
        said = self.data.get("findings")
        for item in said if isinstance(said, list) else ():
            if isinstance(item, dict) and isinstance(by := item.get("by"), list):
                found[str(item.get("kind"))] = tuple(map(str, by))
        return found

    @property
    def title(self) -> str:
        """The verdict with its reason, for people: ``FAIL (COMPILE_ERROR)``."""
        return f"{self.word} ({self.reason})" if self.reason else self.word

    @property
    def headline(self) -> str:
        """The summary, with a note before it if runs differed."""
        return f"{self.note}; {self.summary}" if self.note else self.summary

    @property
    def beyond_headline(self) -> str:
        """The detail without a first line that ends the headline, or repeats it with the reason."""
        first, _, rest = self.detail.partition("\n")
        known = self.summary.endswith(first) or first == f"{self.reason}: {self.summary}"
        return rest if first and known else self.detail

    @property
    def said(self) -> dict[str, Any]:
        """The whole ``verdict.json``, or the known part of it."""
        shown = {"reason": self.reason, "summary": self.summary, "detail": self.detail}
        return {**self.data, "verdict": self.word, **shown}

    def to_json(self) -> dict[str, Any]:
        """The form in all reports; ``key`` is None if unknown."""
        return {
            "label": str(self.label),
            "gate": self.gate,
            "verdict": self.word,
            "reason": self.reason,
            "summary": self.headline,
            "cached": self.cached,
            "hermetic": self.hermetic,
            "seconds": round(self.seconds, 3),
            "key": self.key or None,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], declared: Mapping[str, Gate]) -> Self:
        """Read what ``to_json`` wrote about one of the gates ``declared``.

        Raises LookupError, TypeError or UsageError for anything else.
        """
        label, gate, word = value["label"], declared[value["gate"]], value["verdict"]
        return cls(
            *(Label.parse(label), gate, word, value["reason"], value["summary"]),
            key=value["key"] or "",
            cached=value["cached"],
            hermetic=value["hermetic"],
            seconds=value["seconds"],
        )


def _broken(item: Settled) -> Settled | None:
    """``item`` if it ended without a verdict or result."""
    is_broken = item.outcome in {Outcome.INFRA, Outcome.FAILED} and item.verdict is None
    return item if is_broken else None


def _in_one_line(text: str) -> str:
    """A message of several lines in one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(lines) > _BEGIN + _END:
        lines = [*lines[:_BEGIN], "...", *lines[-_END:]]
    return "; ".join(
        line if len(line) <= _MOST_COLUMNS else f"{line[:_MOST_COLUMNS]}..." for line in lines
    )
