"""What was decided about a model's budget and why: JSON lines, and tables for people."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from kabuild.base.fs import appending, atomic_write
from kabuild.model.speedup import NO_SPEEDUP, Speedup
from kabuild.neural.spending import End, Rules, Standing, spent, time_now
from kabuild.report.table import text_table

_STOPPED = (End.INTERRUPTED, End.BROKEN)


@dataclass(frozen=True)
class Session:
    """One session that ended.

    Attributes:
        number: among all sessions, from 1.
        trial: of the part's task.
        gain: the speedup of the whole model, from then, if the part had reached its roof.
        speedup: of the kernel; None if it did not pass.
        problem: why it did not pass.
        state: how the agent ended.
        cached: whether an earlier run of the command had it.
    """

    number: int
    trial: int
    gain: float
    before: Standing
    after: Standing
    speedup: Speedup | None
    problem: str
    state: str
    cached: bool

    @property
    def seconds(self) -> float:
        """Of the session and its gates, when they ran."""
        return self.after.seconds - self.before.seconds

    def to_json(self) -> dict[str, Any]:
        """The form for programs."""
        return {
            "session": self.number,
            "part": self.after.name,
            "trial": self.trial,
            "gain": self.gain,
            "hope": self.before.hope,
            "seconds": self.seconds,
            "state": self.state,
            "problem": self.problem,
            **(self.speedup.to_json() if self.speedup else NO_SPEEDUP),
            "best": self.after.speedup,
            "best_is_least": self.after.least,
            "failed": self.after.failed,
            "cached": self.cached,
        }


class Ledger(AbstractContextManager["Ledger"]):
    """Writes both files while the sessions go on. Raises OSError.

    A run that was stopped before a session ended decided nothing: an earlier run's files stay.
    """

    def __init__(
        self,
        stem: Path,
        parts: Sequence[Standing],
        rules: Rules,
        say: Callable[[str], None],
        **about: str,
    ) -> None:
        """Begin the log with ``about`` and the rules; ``say`` gets each decision as a line.

        The files are called ``stem`` with two suffixes.
        """
        self.log, self.table = (stem.with_name(f"{stem.name}{end}") for end in (".jsonl", ".txt"))
        self.sessions: list[Session] = []
        self._rules, self._say = rules, say
        self._left: set[str] = set()
        self._file: BinaryIO = appending(self.log)  # fails now, not after a session
        self._held: list[bytes] = []
        self._begun = False
        self._line("begin", rules=asdict(rules), **about)
        self._moved_on(parts)

    def add(self, session: Session, parts: Sequence[Standing]) -> None:
        """One more session, and how all parts stand after it."""
        self.sessions.append(session)
        self._begin()
        self._line("session", **session.to_json())
        said = "  ".join(_cells(session)[1:])
        self._say(f"[{duration(spent(parts))} of {duration(self._rules.budget)}] {said}")
        self._moved_on(parts)
        atomic_write(self.table, f"{render_sessions(self.sessions)}\n".encode())

    def finish(self, parts: Sequence[Standing], end: End) -> None:
        """The last line, and the whole table."""
        if end in _STOPPED and not self.sessions and self.table.exists():
            return
        self._begin()
        self._line("end", why=end.value, seconds=spent(parts), predicted=1 / time_now(parts))
        text = f"{render_sessions(self.sessions)}\n\n{render_parts(parts, self._rules, end)}\n"
        atomic_write(self.table, text.encode())

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _moved_on(self, parts: Sequence[Standing]) -> None:
        for part in parts:
            why = part.left(self._rules)
            if why and part.name not in self._left:
                self._left.add(part.name)
                self._line("left", part=part.name, why=why.value, **_standing(part))
                self._say(f"no more sessions for {part.name}: {reason(part, self._rules)}")

    def _begin(self) -> None:
        """From now on this run's lines are the log, in place of an earlier run's."""
        if not self._begun:
            self._begun = True
            self._file.close()
            self._file = appending(self.log, fresh=True)
            self._file.write(b"".join(self._held))

    def _line(self, event: str, **fields: Any) -> None:
        line = json.dumps({"event": event, **fields}, sort_keys=True).encode() + b"\n"
        if not self._begun:
            self._held.append(line)
            return
        self._file.write(line)
        self._file.flush()


def reason(part: Standing, rules: Rules) -> str:
    """Why no more sessions go to a part, with the numbers that decide; empty if some may."""
    why = part.left(rules)
    told = {
        "near_roof": f"it reaches {part.of_roof:.0%} of its roof (--near_roof={rules.near_roof:g})",
        "fast_enough": f"it is {shown(part)} as fast (--enough={rules.enough:g})",
        "stalled": f"sessions in a row without progress: {part.failed} (--stalled={rules.stalled})",
        "part_budget": f"{duration(part.seconds)} spent, and a session may take "
        f"{duration(rules.session)} (--part_budget={duration(rules.part_budget)})",
    }
    return told[why.value] if why else ""


def shown(part: Standing) -> str:
    """The speedup of a part's best kernel, ``~1.90x`` if that is the least that it may be."""
    return f"{'~' if part.least else ''}{part.speedup:.2f}x"


def render_sessions(sessions: Sequence[Session]) -> str:
    """A line for each session: why there, and what came of it."""
    head = ("#", "part", "trial", "could gain", "time", "verdict", "speedup", "best")
    return text_table([head, *map(_cells, sessions)], right=(0, 2, 3, 4, 6, 7))


def _cells(session: Session) -> tuple[str, ...]:
    return (
        str(session.number),
        session.after.name,
        f"#{session.trial}",
        f"{session.gain:.3f}x",
        duration(session.seconds),
        session.problem or "PASS",
        str(session.speedup or "-"),
        shown(session.after),
    )


_ENDED = {
    End.PARTS_DONE: "every part is done",
    End.BUDGET: "the budget ended",
    End.INTERRUPTED: "interrupted",
    End.BROKEN: "the machine failed",
}


def render_parts(parts: Sequence[Standing], rules: Rules, end: End) -> str:
    """A line for each part: what it has become, and why no more was spent on it."""
    rows = [("part", "share", "sessions", "time", "speedup", "of roof", "why no more")]
    rows += [
        (
            part.name,
            f"{part.share:.1%}",
            str(part.sessions),
            duration(part.seconds),
            shown(part),
            f"{part.of_roof:.0%}",
            reason(part, rules) or _ENDED[end],
        )
        for part in parts
    ]
    return text_table(rows, right=(1, 2, 3, 4, 5))


def parts_json(parts: Sequence[Standing], rules: Rules) -> list[dict[str, Any]]:
    """The parts in the form for programs."""
    return [
        {"part": part.name, **_standing(part), "left": why.value if why else None}
        for part in parts
        for why in [part.left(rules)]
    ]


def _standing(part: Standing) -> dict[str, Any]:
    return {
        "share": part.share,
        "sessions": part.sessions,
        "failed": part.failed,
        "seconds": part.seconds,
        "speedup": part.speedup,
        "least": part.least,
        "best": part.best,
        "of_roof": part.of_roof,
    }


def duration(seconds: float) -> str:
    """``2h``, ``1h30m``, ``45m``, ``12s``: as ``--budget`` takes it."""
    if seconds < 60:
        return f"{seconds:.3g}s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    found = ((hours, "h"), (minutes, "m"), (0 if hours else rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in found if number) or "0s"
