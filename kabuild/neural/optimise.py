"""The sessions of an agent at the parts of a model, one after the other, within a budget.

Each session is a trial of the part's task, cached by itself. A run that was interrupted finds those
that ended, takes the same decisions again, and goes on: nothing else has to be kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from kabuild.analysis.configure import find_agent
from kabuild.base.errors import ExitCode, Reason, UsageError
from kabuild.base.fs import atomic_write
from kabuild.builder import Builder
from kabuild.loading import find_workspace, load_workspace
from kabuild.loading.loader import Loader
from kabuild.loading.request import Request
from kabuild.model.digest import Digest
from kabuild.model.options import MOST_TRIALS
from kabuild.model.speedup import Speedup
from kabuild.model.task_result import TaskResult
from kabuild.neural.ledger import Ledger, Session, duration
from kabuild.neural.packages import Known, package_of
from kabuild.neural.running import PACKAGE
from kabuild.neural.spending import Attempt, End, Next, Rules, Standing, decide
from kabuild.neural.weighted import weighted
from kabuild.pipeline import Summary
from kabuild.store import Store

AGENT = "optimised"
"""The agent that replays what was found: ``solutions/optimised`` of each part."""

SPENT = 3600.0
"""Seconds of a session whose agent declares none."""


@dataclass(frozen=True)
class Optimised:
    """How the sessions ended.

    Attributes:
        parts: with the largest share first.
        broken: the build that the machine failed, or None.
        log, table: the files that say what was decided.
    """

    parts: tuple[Standing, ...]
    sessions: tuple[Session, ...]
    rules: Rules
    end: End
    broken: Summary | None
    log: Path
    table: Path


def session_seconds(request: Request) -> float:
    """The most seconds that a session of the agent takes. Raises UsageError if it has none."""
    loader = Loader(load_workspace(find_workspace(request.cwd)))
    name = request.agent or ""
    agent = find_agent(loader, loader.workspace.agent_label(name))
    if agent.attrs.get("replays") is not None:
        what = f"agent '{name}' has no sessions: it hands in files that are there"
        hint = f"put them into the model with: kabuild model verify DIRECTORY --agent={name}"
        raise UsageError(Reason.BAD_FLAG, what, hint=hint)
    return float(agent.attrs.get("seconds") or SPENT)


def check_budgets(rules: Rules, agent: str) -> None:
    """Raise UsageError if no session fits into a budget."""
    for flag, seconds in (("--budget", rules.budget), ("--part_budget", rules.part_budget)):
        if seconds < rules.session:
            longest = duration(rules.session)
            what = (
                f"{flag}={duration(seconds)} is less than a session of {agent} may take, {longest}"
            )
            hint = "raise it, or declare an agent with fewer 'seconds'"
            raise UsageError(Reason.BAD_FLAG, what, hint=hint)


def optimise(
    directory: Path, request: Request, rules: Rules, builds: Builder, say: Callable[[str], None]
) -> Optimised:
    """Spend the budget; ``say`` gets a line for each decision. Raises KabuildError."""
    root = find_workspace(request.cwd)
    package = package_of(directory, root)
    known = Known.load(directory)
    parts = {
        name: Standing(name, place.share, place.roof_share)
        for name, place in sorted(known.parts.items(), key=lambda item: -item[1].share)
        if place.is_task
    }
    if not parts:
        what = f"no part of {directory} is a task"
        raise UsageError(Reason.BAD_FLAG, what, hint="extract other parts, with --part or --top")
    where = root / "out" / PACKAGE / known.name / "optimise" / _file_of(request.agent or "")
    about = {"model": known.name, "agent": request.agent or ""}
    with Ledger(where, tuple(parts.values()), rules, say, **about) as ledger:
        run = _Run(known, directory, package, request, builds)
        broken = None
        while isinstance(found := decide(tuple(parts.values()), rules), Next):
            before = found.part
            if before.sessions >= MOST_TRIALS:
                parts[before.name] = replace(before, failed=rules.stalled)
                continue
            summary, session = run.session(found, len(ledger.sessions) + 1, rules)
            if session is None:
                found, broken = (
                    (End.INTERRUPTED, None) if summary.interrupted else (End.BROKEN, summary)
                )
                break
            parts[before.name] = session.after
            ledger.add(session, tuple(parts.values()))
        assert isinstance(found, End)
        if found in {End.PARTS_DONE, End.BUDGET}:
            for part in parts.values():
                if not part.best:
                    run.file(part.name).unlink(missing_ok=True)
        ledger.finish(tuple(parts.values()), found)
    return Optimised(
        *(tuple(parts.values()), tuple(ledger.sessions), rules, found, broken),
        *(ledger.log, ledger.table),
    )


def _file_of(agent: str) -> str:
    """The path that is named after an agent: ``agents/mine`` for ``//agents:mine``."""
    return agent.lstrip("/").replace(":", "/")


@dataclass
class _Run:
    """What all sessions of one call have in common."""

    known: Known
    directory: Path
    package: str
    request: Request
    builds: Builder

    def __post_init__(self) -> None:
        self._counted: set[Digest] = set()

    def session(self, wanted: Next, number: int, rules: Rules) -> tuple[Summary, Session | None]:
        """The next trial of a part, perhaps from the cache; None if it did not end."""
        part = wanted.part
        trial = part.sessions + 1
        patterns = (f"//{self.package}/{part.name}",)
        summary = self.builds.run(replace(self.request, patterns=patterns, trials=trial))
        result = next((row for row in summary.table if row.trial == trial), None)
        stopped = summary.exit_code in {ExitCode.INTERRUPTED, ExitCode.ENVIRONMENT}
        if stopped or result is None or not result.judged:
            return summary, None
        calls = self.known.parts[part.name].calls
        speedup = (weighted(result.cases, calls) or result.measured) if result.passed else None
        counted = speedup if speedup and surely_faster(speedup) else None
        attempt = Attempt(
            counted.value if counted else None,
            self._seconds(result, summary),
            least=bool(counted and counted.wide),
        )
        after = part.after(attempt, rules)
        if after.best == trial and (text := _handed_in(result, summary, self.builds.store)):
            atomic_write(self.file(part.name), text)
        agent = summary.settled.get(result.label.sub("agent"))
        gate = result.problem
        return summary, Session(
            number=number,
            trial=trial,
            gain=wanted.gain,
            before=part,
            after=after,
            speedup=speedup,
            problem=(gate.reason or gate.word) if gate else "",
            state=str(result.agent.get("state", "")),
            cached=bool(agent and agent.cached),
        )

    def file(self, name: str) -> Path:
        """Where a part's fastest kernel is kept."""
        return self.directory / name / "solutions" / AGENT / f"{name}.py"

    def _seconds(self, result: TaskResult, summary: Summary) -> float:
        """Seconds that the session and its gates took when they ran, each result counted once."""
        total = 0.0
        labels = (result.label.sub("agent"), *(gate.label for gate in result.gates.values()))
        for label in labels:
            item = summary.settled.get(label)
            if item and item.key and item.result and item.key not in self._counted:
                self._counted.add(item.key)
                total += item.result.seconds
        return total


def surely_faster(speedup: Speedup) -> bool:
    """Whether its whole interval is above 1, so that noise does not explain it."""
    return speedup.ends is None or speedup.ends[0] > 1.0


def _handed_in(result: TaskResult, summary: Summary, store: Store) -> bytes | None:
    """The kernel as the agent handed it in."""
    item = summary.settled.get(result.label.sub("agent"))
    found = item.result.below("solution") if item and item.result else ()
    return next((store.cas.get(file.digest) for _, file in found), None)
