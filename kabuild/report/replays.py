"""What ``kabuild replay --json`` said of a bundle, kept beside it.

It is a claim of who kept it there: it says that somebody ran the bundle again, and what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kabuild.base.bounded_json import bounded_json
from kabuild.base.errors import BundleError, Reason, UsageError
from kabuild.base.printing import in_line
from kabuild.base.reading import read_plain
from kabuild.bundle.compare import Word
from kabuild.model.figure import positive
from kabuild.model.gate import Role
from kabuild.model.label import Label
from kabuild.model.task_result import TaskResult

Case = Mapping[str, Any]

SUFFIX = ".replay.json"
_SAME = (Word.REPRODUCED.value, Word.SAME_OUTCOME.value)
_HINT = "kabuild replay --json BUNDLE > BUNDLE" + SUFFIX


@dataclass(frozen=True)
class Replay:
    """How the actions of a bundle ended when they ran again.

    Attributes:
        said: words by label.
        differing: the tasks of which an action that is no gate differs, such as the compilation of
            what its kernels are timed against. None if one of no task does, such as that of the
            runner: then all do.
        again: by label and config, the figures of what was timed again; what is not there was
            compared byte for byte.
    """

    said: Mapping[str, str]
    differing: frozenset[str] | None = frozenset()
    again: Mapping[str, Mapping[str, Case]] = field(default_factory=dict, hash=False)

    def count(self, word: Word) -> int:
        """How many actions ended so."""
        return sum(item == word.value for item in self.said.values())

    def unlike(self, task: str) -> list[str]:
        """The actions of a task that gave something else, by their names in its package."""
        of_task = f"{task}:"
        return [
            label.removeprefix(of_task)
            for label, word in self.said.items()
            if label.startswith(of_task) and word == Word.DIFFERENT.value
        ]

    @property
    def text(self) -> str:
        """``80 reproduced, 2 same outcome``."""
        counts = ((self.count(word), word.value) for word in Word)
        return ", ".join(f"{count} {word}" for count, word in counts if count) or "nothing ran"

    def confirmed(self, result: TaskResult) -> Sequence[Case]:
        """The timed configs of ``result``, each as it was then or now, whichever took longer.

        Nothing unless its times were measured again, and every gate said the same. A replay
        compares ratios by their intervals, and times only by their order: so times count as they
        were confirmed, not as they were published.
        """
        judged = [gate for gate in result.gates.values() if gate.key]
        timed = [gate for gate in judged if gate.declared.role is Role.TIMES]
        differs = self.differing is None or result.task in self.differing
        if differs or not all(
            self.said.get(str(gate.label)) in (_SAME[:1] if gate in timed else _SAME)
            for gate in judged
        ):
            return ()
        found = []
        for case in result.cases if timed else ():
            figures = self.again.get(str(timed[0].label))
            now = case if figures is None else figures.get(str(case.get("config", "")))
            if now is not None:
                found.append(max(case, {**case, **now}, key=_taken))
        return found


def _taken(case: Case) -> float:
    return positive(case, "candidate_ns") or 0.0


def replay_beside(bundle: Path) -> Path:
    """Where the replay of a bundle is kept."""
    return bundle.with_name(bundle.name + SUFFIX)


def read_replay(path: Path, digest: str, named: Path | None = None) -> Replay:
    """The replay of the bundle whose manifest has ``digest``.

    Errors call the file ``named``. Raises BundleError for anything else, and ``OSError``.
    """
    named = named or path
    try:
        told: Any = bounded_json(read_plain(path))
        of, actions = told["bundle"], told["actions"]
        said = {str(item["label"]): str(item["result"]) for item in actions}
        differing = _differing(actions)
        again = {
            str(item["label"]): {str(case["config"]): dict(case["now"]) for case in item["figures"]}
            for item in actions
            if item["figures"]
        }
    except (ValueError, TypeError, KeyError, AttributeError, UsageError):
        what = f"{named} is not the output of kabuild replay --json"
        raise BundleError(Reason.BUNDLE_DAMAGED, what, hint=f"make it again: {_HINT}") from None
    if of != digest:
        what = f"{named} belongs to another bundle"
        theirs = in_line(str(of)[:12])
        hint = f"its manifest is sha256:{theirs}, not sha256:{digest[:12]}; remove the file"
        raise BundleError(Reason.BUNDLE_DAMAGED, what, hint=hint)
    return Replay(said, differing, again)


def _differing(actions: Sequence[Mapping[str, Any]]) -> frozenset[str] | None:
    """See ``Replay``. Such actions have no verdict; what they make judges, or is timed against."""
    judged = {str(item["task"]) for item in actions if item["gate"]}
    found = [
        item for item in actions if item["result"] == Word.DIFFERENT.value and not item["gate"]
    ]
    if any(item["task"] not in judged for item in found):
        return None
    return frozenset(Label.parse(item["task"]).in_trial(1).short for item in found)
