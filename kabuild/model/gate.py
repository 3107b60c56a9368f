"""The gates of a family of tasks, as its rule declares them. kabuild knows no gate by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, unique

from kabuild.base.errors import Reason, UsageError
from kabuild.base.suggest import suggest


@unique
class When(StrEnum):
    """When a gate runs.

    USUAL: whenever its task is judged. ON_REQUEST: if requested by name; beside usual gates it
        decides nothing. VALIDATE: in ``kabuild validate``, since it judges the task itself.
    """

    USUAL = "usual"
    ON_REQUEST = "on request"
    VALIDATE = "validate"


@unique
class Role(StrEnum):
    """The figures in the verdict of a gate.

    CHECK: none that count. COMPILES: ``kernels``, what each takes of a processor. TIMES:
    ``mean_speedup`` and ``cases`` with times of both sides; beside it ``samples.json``. COUNTS:
    none; beside it ``analysis.json``, what kernels do. PROFILES: none; beside it ``counters.json``,
    what a device counts while they run. SCORE: ``speedup``, its interval, and
    ``score``; it aggregates the other gates, so it decides only if it is alone.
    """

    CHECK = "check"
    COMPILES = "compiles"
    TIMES = "times"
    COUNTS = "counts"
    PROFILES = "profiles"
    SCORE = "score"


@dataclass(frozen=True)
class Gate:
    """One step of judging.

    Attributes:
        name: of its sub-target.
        when: when it runs.
        role: which figures its verdict has.
        share: the heading of its column in a leaderboard, such as ``compiled``; empty for no
            column.
        watched: whether ``kabuild watch`` runs it by default.
        policies: the scoring policies that a gate with Role.SCORE knows, for ``--policy``.
    """

    name: str
    when: When = When.USUAL
    role: Role = Role.CHECK
    share: str = ""
    watched: bool = False
    policies: tuple[str, ...] = ()

    @property
    def usual(self) -> bool:
        """Whether it decides about a trial by default."""
        return self.when is When.USUAL


NO_GATE = Gate("")
"""Stands for the gate of an action that does not judge."""


@unique
class Pick(StrEnum):
    """The gates that a command runs by default."""

    USUAL = "usual"
    WATCHED = "watched"
    COMPILED = "compiled"
    TIMED = "timed"
    COUNTED = "counted"
    VALIDATE = "validate"

    def takes(self, gate: Gate) -> bool:
        """Whether ``gate`` is one of them."""
        if self is Pick.VALIDATE:
            return gate.when is When.VALIDATE
        if self is Pick.COUNTED:
            return gate.role in {Role.COUNTS, Role.PROFILES}
        return gate.usual and {
            Pick.WATCHED: gate.watched,
            Pick.COMPILED: gate.role is Role.COMPILES,
            Pick.TIMED: gate.role is Role.TIMES,
        }.get(self, True)


@dataclass(frozen=True)
class Gates:
    """The gates that rules declare, by kind of target."""

    kinds: Mapping[str, tuple[Gate, ...]] = field(default_factory=dict, hash=False)

    @property
    def all(self) -> tuple[Gate, ...]:
        """The gates of all kinds, in the order of judging."""
        return merged(self.kinds.values())

    def of(self, kind: str) -> tuple[Gate, ...]:
        """The gates of ``kind``; for an unknown kind, those of all kinds."""
        return self.kinds.get(kind) or self.all


def merged(declared: Iterable[Sequence[Gate]]) -> tuple[Gate, ...]:
    """The gates of several kinds, unique by name, in an order that respects each kind's."""
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


def check_policy(name: str, declared: Iterable[Gate]) -> None:
    """Raise UsageError(BAD_FLAG) for a scoring policy that no gate of ``declared`` knows."""
    known = dict.fromkeys(policy for gate in declared for policy in gate.policies)
    if name not in known:
        hint = suggest(name, known) or f"policies: {', '.join(known) or 'none'}"
        raise UsageError(Reason.BAD_FLAG, f"unknown scoring policy '{name}'", hint=hint)


def deciding(gates: Iterable[Gate]) -> tuple[str, ...]:
    """The names of the deciding gates; gates on request decide only if there are no others."""
    asked = tuple(gates)
    return tuple(gate.name for gate in asked if gate.usual) or tuple(gate.name for gate in asked)


def named(words: Iterable[str]) -> frozenset[str]:
    """The names in ``--gates``, without those after a minus."""
    return frozenset(word.removeprefix("+") for word in words if not word.startswith("-"))


def choose(words: Sequence[str], pick: Pick, declared: Sequence[Gate]) -> tuple[str, ...]:
    """The names of the selected gates, in the order of judging.

    ``compile``, ``correctness`` select these two; ``+sanitize``, ``-perf`` those of ``pick`` with
    ``sanitize`` and without ``perf``; no words those of ``pick``. Raises UsageError for an
    undeclared name, for words of both kinds, and if no gate is left.
    """
    known = [gate.name for gate in declared if gate.when is not When.VALIDATE]
    changes = [word for word in words if word[:1] in {"+", "-"}]
    if changes and len(changes) < len(words):
        raise UsageError(
            Reason.BAD_FLAG,
            f"--gates={','.join(words)} mixes gates with changes to the usual ones",
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
        what = f"--gates={','.join(words)} selects no gate"
        raise UsageError(Reason.BAD_FLAG, what)
    return tuple(gate.name for gate in declared if gate.name in wanted)
