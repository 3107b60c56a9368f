"""Some inputs of every kind, always the same: the whole is ``make test-hostile``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.hostile.jail import ROOT, jailed


def test_a_little_of_everything_finds_nothing() -> None:
    probe = subprocess.run(jailed(["true"]), capture_output=True, text=True, check=False)
    if probe.returncode:
        pytest.skip(f"no namespaces: {probe.stderr.strip()}")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "tests.hostile",
            "--seed=smoke",
            "--inputs=50",
            "--kills=3",
            "--jobs=1",
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
