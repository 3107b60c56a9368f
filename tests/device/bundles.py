"""Bundles of what was evaluated here, for others to check and rerun."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from workplace import PLATFORM, Ran, Workplace

_LINES = 12


def publish(workplace: Workplace, labels: Sequence[str], agent: str, file: Path) -> dict[str, Any]:
    """Publish an agent's evaluations as ``file``, and check that: how both calls ended."""
    made = workplace.kabuild(
        "publish", *labels, PLATFORM, f"--agent={agent}", "-o", str(file), *workplace.flags
    )
    checked = workplace.kabuild("verify", str(file))
    return {
        name: {"exit_code": ran.code, "seconds": round(ran.seconds, 2), "said": _said(ran)}
        for name, ran in {"publish": made, "verify": checked}.items()
    }


def replay(
    workplace: Workplace, file: Path, gates: str = "", tasks: Sequence[str] = ()
) -> dict[str, Any]:
    """Rerun a bundle, or only ``gates`` or ``tasks``: what ``kabuild replay --json`` says of it."""
    chosen = [*tasks, *([f"--gates={gates}"] if gates else [])]
    ran = workplace.kabuild("replay", str(file), "--json", *chosen)
    ended = {"exit_code": ran.code, "seconds": round(ran.seconds, 2), "said": _said(ran)[-1:]}
    return {**ended, "replay": ran.json}


def _said(ran: Ran) -> list[str]:
    return (ran.out + ran.err).splitlines()[-_LINES:]
