"""Judges all cheats and twins that were selected, in as few builds as possible."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.testkit.cli import CliWorkspace

from .candidates import Candidate, declare

Entry = Mapping[str, Any]
BUSY = 1.5


class Judged:
    """What the real program said of every candidate, by gate."""

    def __init__(self, workspace: CliWorkspace, candidates: list[Candidate]) -> None:
        self._entries: dict[str, dict[str, Entry]] = {}
        self._loads = [os.getloadavg()[0]]
        for candidate in candidates:
            declare(workspace, candidate)
        for gates in sorted({candidate.gates for candidate in candidates}):
            group = [c for c in candidates if c.gates == gates]
            targets = [f"//{candidate.package}" for candidate in group]
            ran = workspace.run("test", *targets, f"--gates={','.join(gates)}", "--json")
            assert ran.json["totals"]["infra"] == 0, ran.out + ran.err
            for entry in ran.json["targets"]:
                package = entry["task"].partition(":")[0].removeprefix("//")
                self._entries.setdefault(package, {})[entry["gate"]] = entry
            self._loads.append(os.getloadavg()[0])

    @property
    def busy(self) -> bool:
        """Whether others wanted the processors meanwhile, so that clocks may differ by accident."""
        return max(self._loads) > BUSY * (os.cpu_count() or 1)

    def gate(self, candidate: Candidate, gate: str) -> Entry:
        """What came of one gate."""
        return self._entries[candidate.package][gate]


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """Where all candidates are declared."""
    return CliWorkspace.make(tmp_path_factory.mktemp("cheats"))


@pytest.fixture(scope="session")
def judged(request: pytest.FixtureRequest, workspace: CliWorkspace) -> Judged:
    """Every candidate that a selected test asks for, judged."""
    asked: dict[Path, Candidate] = {}
    for item in request.session.items:
        candidate = getattr(item, "callspec", None) and item.callspec.params.get("candidate")  # type: ignore[attr-defined]
        if isinstance(candidate, Candidate):
            asked[candidate.path] = candidate
    return Judged(workspace, list(asked.values()))
