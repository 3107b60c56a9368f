"""``kabuild watch``: gates as they settle, and the trend of speedups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kabuild.base.printing import escaped
from kabuild.model.event import ActionSettled, Event, Warned
from kabuild.model.label import Label
from kabuild.model.result import Outcome, Settled
from kabuild.model.speedup import Speedup
from kabuild.model.task_result import TaskResult
from kabuild.model.verdict import Verdict
from kabuild.report.failures import render_failures
from kabuild.report.scoreboard import agent_end
from kabuild.report.table import Style, plain

_KEPT = 8
"""The number of speedups in the line of a task."""

_FAILURES, _ERROR, _BROKEN = (Label("", name) for name in ("failures", "error", "broken"))
"""Stand for messages that are no gate's."""

_UNJUDGED = frozenset({Outcome.INFRA, Outcome.FAILED})


class WatchReport:
    """Prints news: a gate with the same key as before prints nothing.

    ``write`` prints one line. ``emit`` may be called from any thread; the build's is one.
    """

    def __init__(
        self, write: Callable[[str], None], style: Style = plain, rerun: Sequence[str] = ()
    ) -> None:
        self._print = write
        self._style = style
        self._rerun = rerun
        self._spoke = False
        self._said: dict[Label, str] = {}
        self._speedups: dict[Label, list[Speedup]] = {}

    def emit(self, event: Event) -> None:
        """Print the line of a gate, or of an unfinished agent, if it is news."""
        if isinstance(event, Warned):
            self._write(f"warning: {event.message}")
        elif isinstance(event, ActionSettled) and event.settled.verdict:
            self._gate(event.settled)
        elif isinstance(event, ActionSettled) and event.settled.outcome is Outcome.DONE:
            self._agent(event.settled)

    def fail(self, error: Exception) -> None:
        """Print the error of a save without a build, unless it is the previous one."""
        if self._is_new(_ERROR, str(error)):
            self._write(f"error: {error}")
        self._spoke = False

    def finish(self, table: Sequence[TaskResult], settled: Sequence[Settled], closing: str) -> None:
        """After a build: print failures, the trend of each task's speedup, and ``closing``.

        Prints nothing if nothing changed.
        """
        was_broken = any(self._said.pop(label, None) for label in (_ERROR, _BROKEN))
        for result in table:
            speedup = result.measured
            trend = self._speedups.setdefault(result.label, [])
            if result.passed and speedup is not None and (not trend or trend[-1] != speedup):
                trend.append(speedup)
                shown = " → ".join(map(str, trend[-_KEPT:]))
                self._write(f"{result.label.short}  speedup {shown}")
        text = "\n".join(render_failures(table, settled, rerun=self._rerun))
        if text and self._is_new(_FAILURES, text):
            self._write(text)
        elif not text:
            self._said.pop(_FAILURES, None)
        if any(item.outcome in _UNJUDGED for item in settled):
            self._said[_BROKEN] = text
        elif was_broken and not self._spoke:
            for result in table:
                gate = result.problem
                word = gate.reason or gate.word if gate else "PASS"
                self._write(f"{result.label.short}  {word} again")
        if self._spoke:
            self._write(closing)
            self._spoke = False

    def _gate(self, settled: Settled) -> None:
        verdict = settled.verdict
        assert verdict is not None
        if verdict.verdict is Verdict.SKIPPED:
            return
        word = verdict.verdict.value
        key = settled.key.hash if settled.key else word
        if self._is_new(settled.label, key):
            seconds = "cached" if settled.cached else f"{settled.seconds:.2f} s"
            padded = self._style(word.ljust(8), word)
            summary = f"  {escaped(verdict.summary)}" if verdict.summary else ""
            self._write(f"{verdict.gate:<12} {padded} {seconds:>8}{summary}")

    def _agent(self, settled: Settled) -> None:
        """Report an unfinished agent, since gates would judge the untouched kernel."""
        told = agent_end(settled.facts)
        if self._is_new(settled.label, told) and told:
            self._write(f"{settled.label.short}  {told}")

    def _write(self, line: str) -> None:
        self._spoke = True
        self._print(line)

    def _is_new(self, label: Label, text: str) -> bool:
        if self._said.get(label) == text:
            return False
        self._said[label] = text
        return True
