"""What ``kabuild replay --json`` said of a bundle, kept beside it.

It is a claim of who kept it there: it says that somebody ran the bundle again, and what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kabuild.base.bounded_json import bounded_json
from kabuild.base.errors import BundleError, Reason
from kabuild.base.printing import in_line
from kabuild.base.reading import read_plain
from kabuild.bundle.compare import Word
from kabuild.model.gate import Role
from kabuild.model.task_result import TaskResult

SUFFIX = ".replay.json"
_HINT = "kabuild replay --json BUNDLE > BUNDLE" + SUFFIX


@dataclass(frozen=True)
class Replay:
    """How the actions of a bundle ended when they ran again: words by label."""

    said: Mapping[str, str]

    def count(self, word: Word) -> int:
        """How many actions ended so."""
        return sum(item == word.value for item in self.said.values())

    @property
    def text(self) -> str:
        """``80 reproduced, 2 same outcome``."""
        counts = ((self.count(word), word.value) for word in Word)
        return ", ".join(f"{count} {word}" for count, word in counts if count) or "nothing ran"

    def reproduces(self, result: TaskResult) -> bool:
        """Whether its times were measured again, and every gate said the same."""
        judged = [gate for gate in result.gates.values() if gate.key]
        timed = [gate for gate in judged if gate.declared.role is Role.TIMES]
        again = (Word.REPRODUCED.value, Word.SAME_OUTCOME.value)
        return (
            bool(timed)
            and all(self.said.get(str(gate.label)) == Word.REPRODUCED.value for gate in timed)
            and all(self.said.get(str(gate.label)) in again for gate in judged)
        )


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
    except (ValueError, TypeError, KeyError):
        what = f"{named} is not the output of kabuild replay --json"
        raise BundleError(Reason.BUNDLE_DAMAGED, what, hint=f"make it again: {_HINT}") from None
    if of != digest:
        what = f"{named} belongs to another bundle"
        theirs = in_line(str(of)[:12])
        hint = f"its manifest is sha256:{theirs}, not sha256:{digest[:12]}; remove the file"
        raise BundleError(Reason.BUNDLE_DAMAGED, what, hint=hint)
    return Replay(said)
