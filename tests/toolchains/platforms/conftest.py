"""Drivers for tests of devices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.testkit.fake_nvidia import FakeNvidia, compile_driver, make_fake

Fake = Callable[..., FakeNvidia]


@pytest.fixture(scope="session")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_driver(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def fake(tmp_path: Path, driver: Path, monkeypatch: pytest.MonkeyPatch) -> FakeNvidia:
    """A machine with NVIDIA's driver, which this process finds."""
    made = make_fake(tmp_path / "machine", driver)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return made
