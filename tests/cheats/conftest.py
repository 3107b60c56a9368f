"""Judges all cheats and twins that were selected, in as few builds as possible.

What is not ``untimed`` runs alone: there, a lying clock has to be told from a neighbour's noise.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
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


def pytest_configure(config: pytest.Config) -> None:
    """Say what ``untimed`` means."""
    config.addinivalue_line("markers", "untimed: measures no time, so it may run beside others")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the candidates that no gate times."""
    for item in items:
        candidate = _candidate(item)
        if candidate and "perf" not in candidate.gates:
            item.add_marker(pytest.mark.untimed)


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> CliWorkspace:
    """Where all candidates are declared."""
    return CliWorkspace.make(tmp_path_factory.mktemp("cheats"))


@pytest.fixture(scope="session")
def judged(request: pytest.FixtureRequest, workspace: CliWorkspace) -> Judged:
    """Every candidate that a selected test asks for, judged."""
    asked = {c.path: c for item in request.session.items if (c := _candidate(item))}
    return Judged(workspace, list(asked.values()))


def _candidate(item: pytest.Item) -> Candidate | None:
    """Whom a test is about."""
    callspec = getattr(item, "callspec", None)
    candidate = callspec.params.get("candidate") if callspec else None
    return candidate if isinstance(candidate, Candidate) else None
