"""Sudden ends at random moments: nothing that was finished is lost, and nothing stays behind."""

from __future__ import annotations

import json
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.hostile.draw import Draw
from tests.hostile.ground import Ground
from tests.hostile.kinds.kind import Kind
from tests.hostile.oracle import Rules

_SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
_EVENTS = "events.jsonl"


def play(draw: Draw, ground: Ground) -> None:
    """Kill a build, from an empty store or a half-full one; then build again."""
    ground.run(ground.call("clean", "--expunge"))
    for _ in range(draw.choice((1, 1, 2))):
        _killed(draw, ground)
    finished = _settled(ground.root / _EVENTS)
    ended = ground.run(ground.call("test", "//tasks/...", "--json", f"--events={_EVENTS}"))
    again = _settled(ground.root / _EVENTS)
    found = json.loads(ended.out) if ended.code == 3 else None
    ground.expect(
        holds=found is not None and ground.rows(found) == ground.truth,
        what="wrong verdicts after a kill",
        detail=ended.text,
    )
    lost = sorted(label for label in finished if not again.get(label, {}).get("cached"))
    ground.expect(holds=not lost, what="lost a result that was finished", detail=str(lost))
    ground.check_store()
    strange = [str(path) for path in ground.root.rglob("*.tmp")]
    ground.expect(holds=not strange, what="leftover: half-written files", detail=str(strange))


def _killed(draw: Draw, ground: Ground) -> None:
    number = draw.choice(_SIGNALS)
    call = replace(
        ground.call("test", "//tasks/...", f"--events={_EVENTS}", "--jobs=2"),
        kill=(int(number), draw.uniform(0.0, 1.1) * ground.full_seconds),
        group=draw.chance(0.5),
        again=draw.chance(0.2),
    )
    # As it ends, Python takes its handlers back: a signal may still arrive then.
    codes = frozenset((3, 8, -int(number)))
    ended = ground.run(call, Rules(silent=True, killed=int(number), codes=codes))
    if number in {signal.SIGTERM, signal.SIGINT} and ended.code == 8:
        ground.expect(
            holds="interrupted" in ended.text, what="an interrupt without a word", detail=ended.text
        )


def _settled(path: Path) -> dict[str, Any]:
    """What a build said that it had finished, by label; a line that is cut off says nothing."""
    found = {}
    for line in path.read_text().splitlines() if path.is_file() else ():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        settled = event["event"] == "action_settled" and event["outcome"] == "done"
        if settled and event["key"] and event.get("verdict") != "SKIPPED":
            found[event["label"]] = event
    return found


KINDS = (Kind("kills", 0.0, play),)
