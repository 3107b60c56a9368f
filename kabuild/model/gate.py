"""The gates of a family of tasks, as its rule declares them. kabuild knows none by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, unique

from kabuild.base.errors import Reason, UsageError
from kabuild.base.suggest import suggest


@unique
class When(StrEnum):
    """When a gate runs.

    USUAL: whenever its task is judged. ON_REQUEST: where it is asked for by name; it decides
    nothing beside usual gates. VALIDATE: in ``kabuild validate``, since it judges the task itself.
    """

    USUAL = "usual"
    ON_REQUEST = "on request"
    VALIDATE = "validate"


@unique
class Role(StrEnum):
    """What figures the verdict of a gate has.

    CHECK: none that count. TIMES: ``mean_speedup`` and ``cases`` with times of both sides; beside
    it ``samples.json``. SCORE: ``speedup``, its interval, and ``score``; it counts what the other
    gates said, so that it decides only where it is alone.
    """

    CHECK = "check"
    TIMES = "times"
    SCORE = "score"


@dataclass(frozen=True)
class Gate:
    """One step of judging.

    Attributes:
        name: of the sub-target whose action judges.
        when: when it runs.
        role: which figures its verdict has.
        share: the heading, in a leaderboard, of the share of tasks that passed it: ``compiled``;
            empty where it has no column there.
        watched: whether ``kabuild watch`` runs it where no gates are named.
    """

    name: str
    when: When = When.USUAL
    role: Role = Role.CHECK
    share: str = ""
    watched: bool = False

    @property
    def usual(self) -> bool:
        """Whether a trial counts by it, and not only by what it was asked for besides."""
        return self.when is When.USUAL


NO_GATE = Gate("")
"""What an action is that does not judge."""


@unique
class Pick(StrEnum):
    """Which gates a command means where its user names none."""

    USUAL = "usual"
    WATCHED = "watched"
    TIMED = "timed"
    VALIDATE = "validate"

    def takes(self, gate: Gate) -> bool:
        """Whether ``gate`` is among them."""
        if self is Pick.VALIDATE:
            return gate.when is When.VALIDATE
        return gate.usual and {
            Pick.WATCHED: gate.watched,
            Pick.TIMED: gate.role is Role.TIMES,
        }.get(self, True)


@dataclass(frozen=True)
class Gates:
    """The gates that rules declare, by kind of target."""

    kinds: Mapping[str, tuple[Gate, ...]] = field(default_factory=dict, hash=False)

    @property
    def all(self) -> tuple[Gate, ...]:
        """Those of all kinds, in the order of judging."""
        return merged(self.kinds.values())

    def of(self, kind: str) -> tuple[Gate, ...]:
        """Those of ``kind``; of a kind that is not known here, those of all kinds."""
        return self.kinds.get(kind) or self.all


def merged(declared: Iterable[Sequence[Gate]]) -> tuple[Gate, ...]:
    """The gates of several kinds, each once by name, in an order that keeps that of each kind."""
    order: list[Gate] = []
    for gates in declared:
        place = 0
        for gate in gates:
            names = [known.name for known in order]
            if gate.name in names:
                place = names.index(gate.name) + 1
            else:
                order.insert(place, gate)
                place += 1
    return tuple(order)


def deciding(gates: Iterable[Gate]) -> tuple[str, ...]:
    """The names of those by which a trial counts: what was asked for besides, only where alone."""
    asked = tuple(gates)
    return tuple(gate.name for gate in asked if gate.usual) or tuple(gate.name for gate in asked)


def named(words: Iterable[str]) -> frozenset[str]:
    """The names that ``--gates`` asks for; those with a minus it takes away."""
    return frozenset(word.removeprefix("+") for word in words if not word.startswith("-"))


def choose(words: Sequence[str], pick: Pick, declared: Sequence[Gate]) -> tuple[str, ...]:
    """The names of the gates that are meant, in the order of judging.

    ``compile``, ``correctness`` mean these; ``+sanitize``, ``-perf`` those of ``pick`` without
    ``perf``, and ``sanitize`` besides; no word those of ``pick``. Raises UsageError for a name that
    is not declared, for words of both kinds, and where no gate is left.
    """
    known = [gate.name for gate in declared if gate.when is not When.VALIDATE]
    changes = [word for word in words if word[:1] in {"+", "-"}]
    if changes and len(changes) < len(words):
        raise UsageError(
            Reason.BAD_FLAG,
            f"--gates={','.join(words)} both names gates and changes the usual ones",
            hint="write --gates=compile,sanitize or --gates=+sanitize,-perf",
        )
    for word in words:
        name = word[1:] if changes else word
        if name not in known:
            raise UsageError(
                Reason.UNKNOWN_GATE,
                f"unknown gate '{name}'",
                hint=suggest(name, known) or f"gates: {', '.join(known) or 'none'}",
            )
    usual = {gate.name for gate in declared if pick.takes(gate)}
    removed = {word[1:] for word in words if word.startswith("-")}
    wanted = named(words) if words and not changes else (usual | named(words)) - removed
    if words and not wanted:
        what = f"--gates={','.join(words)} leaves no gate"
        raise UsageError(Reason.BAD_FLAG, what)
    return tuple(gate.name for gate in declared if gate.name in wanted)
