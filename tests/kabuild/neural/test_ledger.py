"""The files that say what was decided, and which runs write them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kabuild.model.speedup import Speedup
from kabuild.neural.ledger import Ledger, Session
from kabuild.neural.spending import End, Rules, Standing

RULES = Rules(budget=1000, part_budget=500, session=100)
PART = Standing("norm", share=0.5, roof_share=0.25)
AFTER = replace(PART, sessions=1, speedup=1.9, best=1, least=True)
SESSION = Session(1, 1, 1.5, PART, AFTER, Speedup(1.9, 1.9, 17.3), "", "finished", cached=False)


def run(stem: Path, *sessions: Session, end: End) -> tuple[str, str]:
    """The log and the table after one more run."""
    with Ledger(stem, [PART], RULES, lambda _: None, agent=stem.name) as ledger:
        for session in sessions:
            ledger.add(session, [session.after])
        ledger.finish([AFTER if sessions else PART], end)
    return ledger.log.read_text(), ledger.table.read_text()


@pytest.mark.parametrize("end", [End.INTERRUPTED, End.BROKEN])
def test_a_run_without_a_session_leaves_the_files_of_another(tmp_path: Path, end: End) -> None:
    stem = tmp_path / "new/agent.of.mine"
    empty = run(stem, end=end)
    assert '"event": "end"' in empty[0]
    assert "interrupted" in empty[1] or "the machine failed" in empty[1]

    full = run(stem, SESSION, end=End.BUDGET)
    assert full[0].count('"event": "begin"') == full[0].count('"event": "session"') == 1
    assert "~1.90x" in full[1]
    assert run(stem, end=end) == full
    assert run(stem, end=End.BUDGET) != full
    assert [file.name for file in stem.parent.iterdir() if "tmp" in file.name] == []
