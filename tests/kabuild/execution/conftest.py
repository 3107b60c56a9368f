"""Machines that share a cache. What needs gRPC is imported by those who ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.testkit.machines import Machine
    from tests.testkit.reapi_server import ReapiServer


@pytest.fixture
def server() -> Iterator[ReapiServer]:
    from tests.testkit.reapi_server import ReapiServer

    with ReapiServer() as server:
        yield server


@pytest.fixture
def writer(tmp_path: Path, server: ReapiServer) -> Machine:
    """A machine that has built everything and sent it."""
    from tests.testkit.machines import WRITER, Machine

    machine = Machine(tmp_path / "one", server.endpoint(retries=0))
    machine.build(WRITER)
    assert (machine.ran, machine.warnings) == (6, [])
    server.calls.clear()
    return machine


@pytest.fixture
def reader(tmp_path: Path, server: ReapiServer) -> Machine:
    """A machine with an empty store."""
    from tests.testkit.machines import Machine

    return Machine(tmp_path / "two", server.endpoint(retries=0))
