"""A fleet whose node does what a test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kabuild.base.errors import InfraError
from kabuild.execution import Execution
from kabuild.execution.prepared import Prepared
from kabuild.model.action import Action, Resources
from kabuild.model.result import ActionResult, OutputFile
from kabuild.store import Store
from tests.testkit.actions import command
from tests.testkit.workers import Fixture, a_fleet

NOW = threading.Event()
DATA = b"made by the node"
ACTION = command("a")
TIMED = command("a", resources=Resources(cpus=0, lease="cpu", timed=True))


@dataclass
class Scripted:
    """A node's strategy that makes one file, unless a test says otherwise."""

    store: Store
    ran: int = 0
    during: Callable[[threading.Event], object] = field(default=lambda _: None)

    def hermetic(self) -> bool:
        return True

    def run(self, prepared: Prepared, cancel: threading.Event) -> Execution:
        self.ran += 1
        self.during(cancel)
        digest = self.store.cas.put(DATA)
        return Execution(ActionResult(0, (OutputFile("result", digest),), seconds=1.0))


@dataclass
class Fleet:
    """One fleet whose node does what a script says."""

    fixture: Fixture
    strategy: Scripted

    def run(self, action: Action = ACTION, **settings: Any) -> Execution:
        return self.fixture.fleet(**settings).run(self.fixture.prepared(action), NOW)

    def failure(self, action: Action = ACTION, **settings: Any) -> InfraError:
        with pytest.raises(InfraError) as caught:
            self.run(action, **settings)
        return caught.value

    def is_right(self, action: Action = ACTION, **settings: Any) -> bool:
        (file,) = self.run(action, **settings).result.files
        return self.fixture.store.cas.get(file.digest) == DATA


@contextmanager
def a_scripted_fleet(root: Path) -> Iterator[Fleet]:
    """A fleet below ``root``, until the end."""
    with Store.open(root / "node") as store:
        strategy = Scripted(store)
        with a_fleet(root, strategy, store) as fixture:
            yield Fleet(fixture, strategy)
