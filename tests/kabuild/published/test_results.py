"""What this repository publishes in ``results/``: whole, and still reproduced here."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from kabuild.bundle.archive import open_bundle
from kabuild.execution.host import instructions
from kabuild.execution.inputs import TOOLCHAINS
from kabuild.store.trees import read_directory
from kabuild.toolchain.fingerprint import environment_fingerprint, hash_file
from tests.tasks.chosen import every
from tests.testkit.cli import REPOSITORY, CliWorkspace

BUNDLES = sorted((REPOSITORY / "results").glob("*/*.kab"))
ON_ANY_MACHINE = sorted((REPOSITORY / "results/cpu").glob("*.kab"))
SAMPLE = 5 if every() else 3
COMPARED = "--gates=compile,correctness,unseen"  # times are compared where nothing else runs


def named(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def published_python(bundle: Path) -> dict[str, Any]:
    """The fingerprint of the Python that judged what is in a bundle."""
    with open_bundle(bundle) as opened:
        blobs = dict(opened.blobs())
    for record in opened.manifest.records:
        for path, node in read_directory(record.root, blobs.__getitem__).walk():
            if path == f"{TOOLCHAINS}/python.json":
                fingerprint: dict[str, Any] = json.loads(blobs[node.digest])
                return fingerprint
    raise AssertionError("no action of it has a Python")


def test_there_are_some() -> None:
    assert REPOSITORY / "results/cpu/expert.kab" in ON_ANY_MACHINE


@pytest.mark.parametrize("bundle", BUNDLES, ids=named)
def test_each_is_whole(bundle: Path, tmp_path: Path) -> None:
    ran = CliWorkspace.make(tmp_path).run("verify", str(bundle))

    assert ran.code == 0, ran.out + ran.err


@pytest.mark.parametrize("bundle", ON_ANY_MACHINE, ids=named)
def test_a_sample_is_reproduced(bundle: Path, tmp_path: Path) -> None:
    """Byte for byte with the same Python, C library and wheels, which are what ``make`` pins.

    Where these cannot be had, the verdicts. Last digits may be other ones where the processor has
    other vector instructions.
    """
    here = json.loads(environment_fingerprint((), hash_file))
    used = published_python(bundle)
    same_python = {**used, "distributions": []} == here and all(
        version(item["name"]) == item["version"] for item in used["distributions"]
    )
    with open_bundle(bundle) as opened:
        same_digits = opened.manifest.instructions in {"", instructions()}

    ran = CliWorkspace.make(tmp_path).run(
        "replay", str(bundle), f"--sample={SAMPLE}", COMPARED, "--json"
    )

    totals = json.loads(ran.out)["totals"]
    assert totals["reproduced"] + totals["same outcome"] == SAMPLE, ran.out
    if same_python and same_digits:
        assert (ran.code, totals["reproduced"]) == (0, SAMPLE), ran.out


@pytest.mark.parametrize("bundle", ON_ANY_MACHINE, ids=named)
def test_what_it_was_made_with_is_what_make_installs(bundle: Path) -> None:
    lines = (REPOSITORY / "toolchains/python/requirements.txt").read_text().splitlines()
    pinned = dict(line.split(" ")[0].split("==") for line in lines if "==" in line)

    used = {item["name"]: item["version"] for item in published_python(bundle)["distributions"]}

    assert used.items() <= pinned.items()
    assert used.keys() >= {"torch", "triton", "numpy"}


def test_another_toolchain_leaves_the_verdicts(tmp_path: Path) -> None:
    """Here setuptools claims to be older, and everything else is as it is."""
    info = tmp_path / "site/setuptools-1.2.3.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Name: setuptools\nVersion: 1.2.3\n\n")
    (info / "RECORD").write_text("")  # files that it lists would have to be there
    early = tmp_path / "early"  # what PYTHONPATH itself names is no part of the toolchain
    early.mkdir()
    (early / "sitecustomize.py").write_text(f"import sys\nsys.path.insert(0, '{info.parent}')\n")
    elsewhere = replace(CliWorkspace.make(tmp_path), env={"PYTHONPATH": f"{REPOSITORY}:{early}"})
    bundle = ON_ANY_MACHINE[0]

    ran = elsewhere.run("replay", str(bundle), "--sample=2", "--gates=compile", "--json")

    assert ran.code == 36, ran.out
    assert ran.json["totals"]["same outcome"] == 2
    (first, _) = ran.json["actions"]
    assert first["detail"].startswith('"PASS"; toolchain python differs on this machine: ')
    assert "setuptools" in first["detail"]
    assert any("setuptools==" in line for line in ran.json["remedies"])
