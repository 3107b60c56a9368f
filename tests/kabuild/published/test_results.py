"""What this repository publishes in ``results/``: whole, and still reproduced here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.testkit.cli import REPOSITORY, CliWorkspace

BUNDLES = sorted((REPOSITORY / "results").glob("*/*.kab"))
ON_ANY_MACHINE = sorted((REPOSITORY / "results/cpu").glob("*.kab"))
SAMPLE = 5
COMPARED = "--gates=compile,correctness,unseen"  # times are compared where nothing else runs


def named(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def test_there_are_some() -> None:
    assert REPOSITORY / "results/cpu/expert.kab" in ON_ANY_MACHINE


@pytest.mark.parametrize("bundle", BUNDLES, ids=named)
def test_each_is_whole(bundle: Path, tmp_path: Path) -> None:
    ran = CliWorkspace.make(tmp_path).run("verify", str(bundle))

    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize("bundle", ON_ANY_MACHINE, ids=named)
def test_a_sample_is_reproduced(bundle: Path, tmp_path: Path) -> None:
    ran = CliWorkspace.make(tmp_path).run(
        "replay", str(bundle), f"--sample={SAMPLE}", COMPARED, "--json"
    )

    totals = json.loads(ran.out)["totals"]
    assert totals["different"] == 0, ran.out
    if ran.code == 36:
        pytest.skip("made with other toolchains than those of this machine: not comparable")
    assert (ran.code, totals["reproduced"]) == (0, SAMPLE), ran.out
