"""What went wrong, why, and the command that shows it again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kabuild.model.label import Label
from kabuild.model.result import Outcome, Settled
from kabuild.report.scoreboard import TaskRow


def render_failures(
    table: Sequence[TaskRow], settled: Iterable[Settled], *, rerun: Sequence[str] = ()
) -> list[str]:
    """One paragraph per task that did not pass, and per action that broke.

    ``rerun`` are the flags that the same verdict needs, such as ``--solution=x.hip``.
    """
    paragraphs = [_action_problem(item) for item in settled if _is_cause(item)]
    for row in table:
        problem = row.first_problem
        if problem is None or problem.settled.verdict is None:
            continue
        verdict = problem.settled.verdict
        head = f"{problem.settled.label}: {verdict.verdict.value}"
        reason = f" ({verdict.reason})" if verdict.reason else ""
        repeated = verdict.detail.startswith(verdict.summary)
        summary = f": {printable(verdict.summary)}" if not repeated else ""
        lines = [f"{head}{reason}{summary}", *_indented(verdict.detail)]
        lines.append(f"  rerun it with: {_command(problem.settled.label, rerun)}")
        paragraphs.append("\n".join(lines))
    return paragraphs


def printable(text: str) -> str:
    """``text`` without control characters: a candidate may have written any into it."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text.expandtabs())


def _is_cause(item: Settled) -> bool:
    """Broken by itself, and not only because something before it was."""
    return item.outcome in {Outcome.INFRA, Outcome.FAILED} and bool(item.message)


def _action_problem(item: Settled) -> str:
    what = "could not be judged" if item.outcome is Outcome.INFRA else "failed"
    return "\n".join([f"{item.label}: {what}", *_indented(item.message)])


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in printable(text).rstrip().splitlines()]


def _command(label: Label, flags: Sequence[str]) -> str:
    return " ".join(["kabuild test", *flags, "--nocache_test_results", str(label)])
