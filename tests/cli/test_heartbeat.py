"""What takes long says so, and what does not is silent."""

from __future__ import annotations

import time

import pytest

from kabuild.cli.heartbeat import said_when_slow


def test_only_what_takes_long_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with said_when_slow("reading", every=60):
        pass
    assert capsys.readouterr().err == ""

    with said_when_slow("reading //toolchains/python", every=0.01):
        deadline = time.monotonic() + 10
        said = ""
        while not said and time.monotonic() < deadline:
            said = capsys.readouterr().err
    assert said.startswith("reading //toolchains/python: 0 s so far\n")
