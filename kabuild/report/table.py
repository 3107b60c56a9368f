"""The final table, as plain text or with colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kabuild.report.scoreboard import TaskRow, Totals

Style = Callable[[str, str], str]

_COLOURS = {"PASS": "32", "FAIL": "31", "REJECTED": "35", "SKIPPED": "33", "INFRA": "36"}


def plain(text: str, _: str) -> str:
    """No colours: for pipes and files."""
    return text


def coloured(text: str, word: str) -> str:
    """ANSI colours by verdict."""
    code = _COLOURS.get(word)
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def render_table(table: Sequence[TaskRow], style: Style = plain) -> str:
    """Tasks down, gates across, then speedup, score and where the result came from."""
    if not table:
        return ""
    gates = list(dict.fromkeys(cell.gate for row in table for cell in row.cells))
    shown = [gate for gate in gates if gate != "score"]
    scored = "score" in gates
    header = ["task", *shown, *(("speedup", "score") if scored else ()), ""]
    body = [_texts(row, shown, scored=scored) for row in table]
    widths = [max(len(line[i]) for line in [header, *body]) for i in range(len(header))]
    lines = [_line(header, widths, plain)]
    lines += [_line(texts, widths, style) for texts in body]
    return "\n".join(lines)


def render_totals(counts: Totals, seconds: float) -> str:
    """The closing line: ``14 actions: 12 cached, 2 executed; 10 gates passed, 1 failed``."""
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
    actions = counts.executed + counts.cached
    noun = "action" if actions == 1 else "actions"
    judged = f"; gates: {', '.join(gates)}" if gates else ""
    return (
        f"{actions} {noun}: {counts.cached} cached, {counts.executed} executed"
        f"{judged}; {seconds:.2f} s"
    )


def _texts(row: TaskRow, gates: Sequence[str], *, scored: bool) -> list[str]:
    words = {cell.gate: cell.word for cell in row.cells}
    texts = [row.label.short, *(words.get(gate, "") for gate in gates)]
    if scored:
        speedup, score = row.figure("speedup"), row.figure("score")
        texts.append("-" if speedup is None else f"{speedup:.2f}x")
        texts.append("-" if score is None else f"{score:.1f}")
    notes = ("cached" if row.cached else "", "" if row.hermetic else "not hermetic")
    texts.append(", ".join(note for note in notes if note))
    return texts


def _line(texts: Sequence[str], widths: Sequence[int], style: Style) -> str:
    cells = [style(text.ljust(width), text) for text, width in zip(texts, widths, strict=True)]
    return "  ".join(cells).rstrip()
