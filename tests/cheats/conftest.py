"""Judges all cheats and twins that were selected, in as few builds as possible.

What is not ``untimed`` runs alone: there, a lying clock has to be told from a neighbour's noise.
Verdicts are recorded (``recorded.py``), and those that no clock decides are kept between test runs.
Whoever is judged is timed anew.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.testkit.cli import CliWorkspace, copy_store
from tests.testkit.kept import kept_alone
from tests.testkit.runtime import link_runtime

from .candidates import GAIN, Candidate, declare
from .recorded import TIMED as TIMED_GATES
from .recorded import Record

Entry = Mapping[str, Any]
TIMED = "perf"
BUSY = 0.2
"""Of the time of the baseline's batches: 0.06 at the most where nobody else computes, and 1 and
more beside as many as there are processors."""


class Judged:
    """What the real program said of every candidate, by gate."""

    def __init__(self, workspace: CliWorkspace, candidates: list[Candidate]) -> None:
        self.workspace = workspace
        for candidate in candidates:
            declare(workspace, candidate)
        timed = [candidate.package for candidate in candidates if TIMED in candidate.gates]
        untimed = [candidate.package for candidate in candidates if TIMED not in candidate.gates]
        self._untimed = Record(workspace.root, untimed)
        self._timed = Record(workspace.root, timed, TIMED_GATES)
        self._entries: dict[str, dict[str, Entry]] = self._untimed.known() | self._timed.known()
        self._candidates = [c for c in candidates if c.package not in self._entries]

    def judge_untimed(self) -> None:
        """Judge all that are not recorded by the gates that no clock decides."""
        self._judge_all(self._candidates, TIMED)
        self._untimed.accept(self._entries)

    def judge_timed(self) -> None:
        """Judge those that are timed by all of their gates; what was judged is recalled."""
        self._judge_all([c for c in self._candidates if TIMED in c.gates])

    def accept_timed(self) -> None:
        """Record those that were timed, but for verdicts that others' noise may have decided."""
        settled = (c.package for c in self._candidates if self._is_settled(c))
        self._timed.accept({package: self._entries[package] for package in settled})

    def _is_settled(self, candidate: Candidate) -> bool:
        found = self._entries[candidate.package].get(TIMED)
        if found is None:
            return False
        if candidate.expected is None:
            return bool(found["verdict"] == "PASS")
        if found["verdict"] == "PASS":
            return candidate.expected.verdict == "PASS" and gain(found) < GAIN
        return (found["verdict"], found["reason"]) in candidate.refusals

    def _judge_all(self, candidates: list[Candidate], without: str = "") -> None:
        groups = defaultdict[tuple[str, ...], list[Candidate]](list)
        for candidate in candidates:
            groups[tuple(gate for gate in candidate.gates if gate != without)].append(candidate)
        for gates, group in sorted(groups.items(), key=lambda item: item[0]):
            self._judge(group, gates)

    def _judge(self, group: list[Candidate], gates: tuple[str, ...], *flags: str) -> None:
        targets = [f"//{candidate.package}" for candidate in group]
        ran = self.workspace.run("test", *targets, f"--gates={','.join(gates)}", "--json", *flags)
        assert ran.json["totals"]["infra"] == 0, ran.out + ran.err
        for entry in ran.json["targets"]:
            package = entry["task"].partition(":")[0].removeprefix("//")
            self._entries.setdefault(package, {})[entry["gate"]] = entry

    def gate(self, candidate: Candidate, gate: str) -> Entry:
        """What came of one gate."""
        return self._entries[candidate.package][gate]

    def again(self, candidate: Candidate) -> None:
        """Judge one candidate once more, by itself."""
        self._judge([candidate], candidate.gates, "--nocache_test_results")

    def busy(self, candidate: Candidate) -> bool:
        """Whether others had the processors while it was timed, so that clocks differ by accident.

        The judge has counted how long it waited for one beside the baseline, which makes nobody
        wait: what the candidate does to look held up is not in it.
        """
        package = candidate.package
        out = self.workspace.root / "out" / package / f"{package.rpartition('/')[2]}.perf"
        configs = json.loads((out / "samples.json").read_text())["configs"].values()
        batches = [batch for config in configs for taken in config["baseline"] for batch in taken]
        waited = sum(batch["waited_ns"] for batch in batches)
        return bool(waited > BUSY * sum(batch["wall_ns"] for batch in batches))


def gain(found: Entry) -> float:
    """How much faster the perf gate says that a candidate is."""
    return float(found["summary"].partition("x")[0].removeprefix("~"))


def pytest_configure(config: pytest.Config) -> None:
    """Say what ``untimed`` means."""
    config.addinivalue_line("markers", "untimed: decided by no clock, so it may run beside others")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the candidates that no gate times."""
    for item in items:
        candidate = _candidate(item)
        if candidate and TIMED not in candidate.gates:
            item.add_marker(pytest.mark.untimed)


@pytest.fixture(scope="session")
def candidates(request: pytest.FixtureRequest) -> list[Candidate]:
    """Those that the selected tests ask for."""
    asked = {c.path: c for item in request.session.items if (c := _candidate(item))}
    return list(asked.values())


@pytest.fixture(scope="session")
def untimed(tmp_path_factory: pytest.TempPathFactory, candidates: list[Candidate]) -> Judged:
    """All candidates, declared, and judged but for their times; in a store of this run's own."""
    directory = tmp_path_factory.mktemp("cheats")
    with kept_alone("cheats") as kept:
        workspace = CliWorkspace.make(directory, kept / "store")
        link_runtime(workspace.store)
        judged = Judged(workspace, candidates)
        judged.judge_untimed()
        copy_store(workspace.store, directory / "store")
    judged.workspace = CliWorkspace(workspace.root, directory / "store")
    return judged


@pytest.fixture(scope="session")
def workspace(untimed: Judged) -> CliWorkspace:
    """Where all candidates are declared; its store has their verdicts but for those of times."""
    return untimed.workspace


@pytest.fixture(scope="session")
def judged(untimed: Judged) -> Iterator[Judged]:
    """Every candidate that a selected test asks for, judged."""
    untimed.judge_timed()
    yield untimed
    untimed.accept_timed()


def _candidate(item: pytest.Item) -> Candidate | None:
    """Whom a test is about."""
    callspec = getattr(item, "callspec", None)
    candidate = callspec.params.get("candidate") if callspec else None
    return candidate if isinstance(candidate, Candidate) else None
