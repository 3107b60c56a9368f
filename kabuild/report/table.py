"""The final table, as plain text or with colours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from kabuild.report.agent_end import agent_end
from kabuild.report.scoreboard import TaskRow, Totals

Style = Callable[[str, str], str]

_COLOURS = {"PASS": "32", "FAIL": "31", "REJECTED": "35", "SKIPPED": "33", "INFRA": "36"}


@dataclass(frozen=True)
class Line:
    """One task in the table: a word for each gate that was asked for, and figures."""

    task: str
    words: Mapping[str, str] = field(hash=False)
    speedup: float | None
    score: float | None
    notes: str

    @classmethod
    def of(cls, row: TaskRow) -> Line:
        """The line of a task that was built."""
        notes = (
            "cached" if row.cached else "",
            "" if row.hermetic else "not hermetic",
            agent_end(row.facts),
        )
        return cls(
            row.label.short,
            {cell.gate: cell.word for cell in row.cells},
            row.figure("speedup"),
            row.figure("score"),
            ", ".join(note for note in notes if note),
        )


def plain(text: str, _: str) -> str:
    """No colours: for pipes and files."""
    return text


def coloured(text: str, word: str) -> str:
    """ANSI colours by verdict."""
    code = _COLOURS.get(word)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def render_table(table: Sequence[Line], style: Style = plain) -> str:
    """Tasks down, gates across, then speedup, score and where the result came from."""
    if not table:
        return ""
    gates = list(dict.fromkeys(gate for line in table for gate in line.words))
    shown = [gate for gate in gates if gate != "score"]
    scored = "score" in gates
    header = ["task", *shown, *(("speedup", "score") if scored else ()), ""]
    body = [_texts(line, shown, scored=scored) for line in table]
    widths = [max(map(len, column)) for column in zip(header, *body, strict=True)]
    lines = [_line(header, widths, plain)]
    lines += [_line(texts, widths, style) for texts in body]
    return "\n".join(lines)


def render_totals(counts: Totals, seconds: float, *, broken: int = 0) -> str:
    """The closing line: ``14 actions: 12 cached, 2 executed; 10 gates passed, 1 failed``.

    ``broken`` actions are counted beside those: they were tried and came to nothing.
    """
    gates = [
        f"{number} {word}"
        for number, word in (
            (counts.passed, "passed"),
            (counts.failed, "failed"),
            (counts.rejected, "rejected"),
            (counts.skipped, "skipped"),
            (counts.infra, "not judged (infra)"),
        )
        if number
    ]
    actions = counts.executed + counts.cached + broken
    noun = "action" if actions == 1 else "actions"
    judged = f"; gates: {', '.join(gates)}" if gates else ""
    return (
        f"{actions} {noun}: {counts.cached} cached, {counts.executed} executed"
        f"{f', {broken} broken' if broken else ''}{judged}; {seconds:.2f} s"
    )


def _texts(line: Line, gates: Sequence[str], *, scored: bool) -> list[str]:
    texts = [line.task, *(line.words.get(gate, "") for gate in gates)]
    if scored:
        texts.append("-" if line.speedup is None else f"{line.speedup:.2f}x")
        texts.append("-" if line.score is None else f"{line.score:.1f}")
    texts.append(line.notes)
    return texts


def _line(texts: Sequence[str], widths: Sequence[int], style: Style) -> str:
    cells = [style(text.ljust(width), text) for text, width in zip(texts, widths, strict=True)]
    return "  ".join(cells).rstrip()
