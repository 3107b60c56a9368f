"""The result of judging a task: the one value behind all commands and reports.

It is made in two ways: from the actions of a build (``GateResult.of``), and from stored verdicts
(``GateResult.read``). Every displayed figure is a property here, or a fold over results in
``report/``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from kabuild.model.figure import number, positive
from kabuild.model.gate import Gate, Role, deciding
from kabuild.model.gate_result import GateResult
from kabuild.model.label import Label
from kabuild.model.speedup import NO_SPEEDUP, Speedup
from kabuild.model.verdict import Verdict


@dataclass(frozen=True)
class Evidence:
    """What a page shows besides the figures of a result; fields are empty if unknown.

    Attributes:
        candidate, baseline: text of the kernels.
        transcript: the lines of the agent's session, unless withheld.
        dims: names of the shape space's dims, as declared.
        task_digest: of what the task asks (``bundle/task_digest.py``).
    """

    candidate: str = ""
    baseline: str = ""
    transcript: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)
    dims: tuple[str, ...] = ()
    task_digest: str = ""


def has_finished(facts: Mapping[str, Any]) -> bool:
    """Whether an agent, by the report on its session, came to its own end; true without one."""
    return str(facts.get("state", "finished")) == "finished"


@dataclass(frozen=True)
class TaskResult:
    """The result of one task, solved once by an agent or a person.

    Attributes:
        label: the task, with the number of the trial after the first one.
        gates: all requested gates by name, in the order of judging, also those without any result.
        figures: the score gate's ``score.json``, or the known part of it.
        agent: the agent's report on its session: ``agent.json``.
        evidence: kernels and transcript, if they were read.
    """

    label: Label
    gates: Mapping[str, GateResult] = field(hash=False)
    figures: Mapping[str, Any] = field(default_factory=dict, compare=False)
    agent: Mapping[str, Any] = field(default_factory=dict, compare=False)
    evidence: Evidence = field(default=Evidence(), compare=False)

    @classmethod
    def of(
        cls, label: Label, gates: Iterable[GateResult], agent: Mapping[str, Any] | None = None
    ) -> Self:
        """From the gates of a build; the figures are those of the score gate."""
        named = {one.gate: one for one in gates}
        score = _with_role(named.values(), Role.SCORE)
        figures = score.data if score else {}
        return cls(label, named, figures, agent or {})

    @property
    def task(self) -> str:
        """The task's shortest label, without the number of the trial."""
        return self.label.in_trial(1).short

    @property
    def trial(self) -> int:
        """The number of the trial, from 1."""
        return self.label.trial

    @property
    def family(self) -> str:
        """The directory of its package, such as ``hip2hip``."""
        parts = self.label.package.split("/")
        return parts[-2] if len(parts) > 1 else ""

    @property
    def tier(self) -> str:
        """``script`` where the task's own script judged it, by the score gate; else empty."""
        tier = self.figures.get("tier")
        return tier if isinstance(tier, str) else ""

    @property
    def group(self) -> str:
        """The results that it may be averaged with: those of its family and tier."""
        return f"{self.family} ({self.tier})" if self.tier else self.family

    @property
    def passed(self) -> bool:
        """Whether it was judged, and every gate said PASS."""
        return bool(self.gates) and all(gate.passed for gate in self.gates.values())

    @property
    def finished(self) -> bool:
        """Whether its agent, if it had one, came to its own end."""
        return has_finished(self.agent)

    @property
    def broken(self) -> bool:
        """Whether an infrastructure failure kept some gate from judging."""
        return any(gate.broken for gate in self.gates.values())

    @property
    def cached(self) -> bool:
        """Whether no gate ran."""
        return all(one.cached or one.verdict is Verdict.SKIPPED for one in self.gates.values())

    @property
    def hermetic(self) -> bool:
        """Whether every gate that ran did so in a sandbox."""
        return all(gate.hermetic for gate in self.gates.values())

    @property
    def problem(self) -> GateResult | None:
        """The deciding gate: the first that did not pass."""
        return next((gate for gate in self.gates.values() if not gate.passed), None)

    @property
    def problems(self) -> tuple[GateResult, ...]:
        """``problem``, then failures of gates that do not decide, since they may be the reason."""
        found = [gate for gate in self.gates.values() if not gate.passed]
        further = [gate for gate in found[1:] if not gate.declared.usual and gate.failed]
        return (*found[:1], *further)

    @property
    def deciding(self) -> tuple[GateResult, ...]:
        """The gates that decide about this result."""
        names = deciding(gate.declared for gate in self.gates.values())
        return tuple(self.gates[name] for name in names)

    @property
    def judged(self) -> bool:
        """Whether the result counts in figures: all gates have verdicts, or one failed.

        Other results were stopped by the machine or the user. They are named, and count nowhere.
        """
        words = self.deciding
        against = any(gate.failed for gate in words)
        return against or (bool(words) and all(gate.verdict for gate in words))

    @property
    def why_unjudged(self) -> str:
        """Why a result does not count: ``NO_DEVICE``, or ``INFRA`` if unknown."""
        for gate in self.deciding:
            if gate.verdict is None:
                return gate.reason or gate.word
        return "no gate was asked for"

    @property
    def correct(self) -> bool:
        """Whether all deciding gates passed; the score gate decides only if it is alone."""
        judges = [gate for gate in self.deciding if gate.declared.role is not Role.SCORE]
        judges = judges or list(self.deciding)
        return bool(judges) and all(gate.passed for gate in judges)

    @property
    def timed(self) -> bool:
        """Whether a gate that times was requested."""
        return _with_role(self.gates.values(), Role.TIMES) is not None

    @property
    def scored(self) -> bool:
        """Whether a score gate was requested."""
        return _with_role(self.gates.values(), Role.SCORE) is not None

    @property
    def cases(self) -> Sequence[Mapping[str, Any]]:
        """The timed configs, as the gate that times wrote them."""
        cases = self._times.get("cases")
        known = cases if isinstance(cases, list | tuple) else ()
        return [case for case in known if isinstance(case, dict) and positive(case, "speedup")]

    @property
    def measured(self) -> Speedup | None:
        """Baseline time / candidate time, the mean over the visible configs, with its interval.

        From the score gate, else from the gate that times. None if not measured or not correct.
        """
        if not self.correct:
            return None
        scored = "speedup" in self.figures  # the score gate found the times unusable
        found = Speedup.read(self.figures) if scored else Speedup.read(self._times, "mean_speedup")
        if found is None or found.ends:
            return found
        low, high = _mean_ends(self.cases)
        return Speedup(found.value, low, high)

    @property
    def speedup(self) -> float | None:
        """The value of ``measured``."""
        return self.measured.value if self.measured else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of ``measured``; None if unknown."""
        return self.measured.ends if self.measured else None

    @property
    def score(self) -> float | None:
        """The score by the requested policy; None if there is none."""
        return number(self.figures, "score")

    def remembered(self) -> Self:
        """The same result as a later build finds it, all from the cache."""
        gates = {
            name: GateResult(
                *(gate.label, gate.declared, gate.word, gate.reason, gate.summary),
                key=gate.key,
                cached=True,
                hermetic=gate.hermetic,
            )
            for name, gate in self.gates.items()
        }
        return replace(self, gates=gates, figures=self._figures())

    def to_json(self) -> dict[str, Any]:
        """The form in all reports: task, trial, gates by name, and figures."""
        return {
            "task": str(self.label.in_trial(1)),
            "trial": self.trial,
            "gates": {name: gate.to_json() for name, gate in self.gates.items()},
            **self._figures(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any], declared: Mapping[str, Gate]) -> Self:
        """Read what ``to_json`` wrote about a task with the gates ``declared``, by name.

        Raises LookupError, TypeError or UsageError for anything else.
        """
        label = Label.parse(value["task"]).in_trial(value["trial"])
        said = value["gates"].items()
        gates = {name: GateResult.from_json(gate, declared) for name, gate in said}
        figures = {name: value[name] for name in (*NO_SPEEDUP, "score")}
        return cls(label, gates, figures | {"tier": value.get("tier", "")})

    @property
    def _times(self) -> Mapping[str, Any]:
        """The verdict of the gate that times."""
        gate = _with_role(self.gates.values(), Role.TIMES)
        return gate.data if gate else {}

    def _figures(self) -> dict[str, float | str | None]:
        measured = self.measured.to_json() if self.measured else NO_SPEEDUP
        return {**measured, "score": self.score, **({"tier": self.tier} if self.tier else {})}


def _with_role(gates: Iterable[GateResult], role: Role) -> GateResult | None:
    """The first of ``gates`` with ``role``; usual ones precede those on request."""
    found = [gate for gate in gates if gate.declared.role is role]
    return next((gate for gate in found if gate.declared.usual), next(iter(found), None))


def _mean_ends(cases: Sequence[Mapping[str, Any]]) -> tuple[float, float] | tuple[None, None]:
    """The means of the ends of the configs' intervals; None if one is unknown."""
    lows = [low for case in cases if (low := positive(case, "low"))]
    highs = [high for case in cases if (high := positive(case, "high"))]
    if not cases or not len(lows) == len(highs) == len(cases):
        return None, None
    return sum(lows) / len(lows), sum(highs) / len(highs)
