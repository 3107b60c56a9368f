"""What tests of runners share."""

from collections.abc import Iterator

import pytest
from runners.launcher import Launcher


@pytest.fixture(scope="module")
def launcher() -> Iterator[Launcher]:
    """One launcher for the tests of a module."""
    with Launcher.start() as started:
        yield started
