"""One published evaluation for all tests of bundles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from kabuild.store import Store
from tests.testkit.cli import CliWorkspace
from tests.testkit.generated import generate


@dataclass(frozen=True)
class Published:
    """A bundle of two tasks, and the workspace that it was made in."""

    bundle: Path
    workspace: CliWorkspace

    def elsewhere(self, directory: Path) -> CliWorkspace:
        """A machine that has nothing of it: an empty workspace and an empty store."""
        return CliWorkspace.make(directory)


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Published:
    directory = tmp_path_factory.mktemp("published")
    return make(directory)


def make(directory: Path) -> Published:
    """Evaluate and publish in ``directory``."""
    generate(directory / "work", 2, shared=2, age=0)
    (directory / "work/tasks/family0/t1/kernel.hip").write_text("bad\n")
    workspace = CliWorkspace(directory / "work", directory / "store")
    ran = workspace.run("publish", "//...", "-o", str(directory / "all.kab"))
    assert ran.code == 0, ran.err
    return Published(directory / "all.kab", workspace)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")
