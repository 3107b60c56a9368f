"""Interpreters for sandboxes, shared by all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kabuild.sandbox import Spawner, probe


@pytest.fixture(scope="module")
def spawner() -> Iterator[Spawner]:
    if why := probe():
        pytest.skip(f"no sandboxes here: {why}")
    with Spawner() as spawner:
        yield spawner
