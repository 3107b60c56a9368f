"""The files of ``kabuild worker config``, checked by the programs that they are for."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from kabuild.worker.setup import Site, files_of
from tests.testkit.buildgrid import VARIABLE

COMPOSE = next(
    (
        found
        for name in ("docker-compose", "/usr/libexec/docker/cli-plugins/docker-compose")
        if (found := shutil.which(name))
    ),
    None,
)
KUBERNETES = shutil.which("kubernetes-validate")
OLDEST = "1.33"
"""Kubernetes whose pods have user namespaces without feature gates."""

if not os.environ.get(VARIABLE):
    pytest.skip("'make fleet' runs it", allow_module_level=True)

compose = pytest.mark.skipif(not COMPOSE, reason="no docker-compose")
kubernetes = pytest.mark.skipif(
    not KUBERNETES, reason="no kubernetes-validate: 'make fleet' gets it"
)
SITES = [
    Site(host="grid.example"),
    Site(host="grid.example", tls=True),
    Site(
        host="grid.example", pool="h200", platform="cuda:sm_90", gpus=8, resource="nvidia.com/gpu"
    ),
    Site(
        host="grid.example",
        pool="mi300x",
        platform="rocm",
        gpus=8,
        groups="video render",
        resource="amd.com/gpu",
    ),
]


def write(kind: str, site: Site, directory: Path) -> Path:
    directory.mkdir(parents=True)
    for name, text in files_of(kind, site).items():
        (directory / name).write_text(text)
    (directory / "node.key").touch()
    return directory


def refusal(*argv: str | Path | None) -> str:
    """What a checker says; empty where it has no objection."""
    done = subprocess.run([str(part) for part in argv], capture_output=True, text=True, check=False)
    return (done.stderr + done.stdout or "refused") if done.returncode else ""


@compose
@pytest.mark.parametrize("site", SITES)
def test_compose_accepts_its_file(site: Site, tmp_path: Path) -> None:
    file = write("compose", site, tmp_path / "fleet") / "compose.yaml"
    assert refusal(COMPOSE, "-f", file, "config", "-q") == ""

    file.write_text(file.read_text().replace("cap_drop", "cap_dorp"))
    assert "cap_dorp" in refusal(COMPOSE, "-f", file, "config", "-q")


@kubernetes
@pytest.mark.parametrize("version", [OLDEST, "1.37"])
@pytest.mark.parametrize("site", SITES)
def test_kubernetes_accepts_its_files(site: Site, version: str, tmp_path: Path) -> None:
    files = write("kubernetes", site, tmp_path / "fleet")
    check = (KUBERNETES, "-k", version, "--strict")
    pool = files / "pool.yaml"
    assert refusal(*check, pool, files / "server.yaml") == ""

    pool.write_text(pool.read_text().replace("procMount", "procMonut"))
    assert "procMonut" in refusal(*check, pool)
