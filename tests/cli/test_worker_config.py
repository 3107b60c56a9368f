"""``kabuild worker config``: the files that start a fleet, and what checkers say of them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from configparser import RawConfigParser
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from kabuild.cli.worker import serve
from kabuild.cli.worker_config import KINDS
from kabuild.worker import setup
from tests.testkit.cli import CliWorkspace

GPUS = ("--platform=cuda", "--gpus=8", "--pool=h200")
FLAGS = [(), ("--tls",), GPUS]
UNITS = [f"kabuild-{name}.service" for name in ("server", "node", "casd", "worker")]


@pytest.fixture
def place(tmp_path: Path) -> CliWorkspace:
    return CliWorkspace.make(tmp_path)


def written(place: CliWorkspace, kind: str, *flags: str) -> Path:
    done = place.run("worker", "config", kind, *flags, "-o", "fleet")
    assert done.code == 0, done.err
    return place.root / "fleet"


class Loader(yaml.SafeLoader):
    """Reads BuildGrid's tags as what they stand before."""


def _plain(loader: Any, _: str, node: Any) -> Any:
    return loader.construct_mapping(node, deep=True) if node.value else None


Loader.add_multi_constructor("!", _plain)


def read(path: Path) -> list[Any]:
    return [*yaml.load_all(path.read_text(), Loader)]


def started(path: Path) -> list[str]:
    """The command of a unit."""
    unit = RawConfigParser(strict=False)
    unit.read(path)
    return shlex.split(unit["Service"]["ExecStart"])


def parsed(argv: list[str]) -> dict[str, Any]:
    """What ``kabuild worker serve`` makes of a command."""
    at = argv.index("serve") + 1
    assert argv[at - 3].endswith("kabuild")
    return serve.make_context("serve", argv[at:], parent=click.Context(serve)).params


def test_the_kinds_are_those_of_the_templates() -> None:
    assert {*setup.KINDS} == {*KINDS}


def test_all_files_of_a_kind_are_printed(place: CliWorkspace) -> None:
    done = place.run("worker", "config", "systemd", "--host=grid.example")
    names = [line[4:-4] for line in done.out.splitlines() if line.startswith("==> ")]

    assert done.code == 0
    others = {"kabuild.conf", "buildgrid.yaml", "kabuild-worker-exec", "get-buildbox"}
    assert {*names} == {*UNITS, *others}
    assert "--bots-remote=http://grid.example:50051 " in done.out


def test_a_single_file_is_printed_as_it_is(place: CliWorkspace) -> None:
    done = place.run("worker", "config", "buildgrid", "--port=7000")

    (config,) = yaml.load_all(done.out, Loader)
    assert config["server"][0]["address"] == "0.0.0.0:7000"


@pytest.mark.parametrize("kind", ["buildgrid", "buildbox"])
def test_a_printed_file_is_the_written_one(place: CliWorkspace, kind: str) -> None:
    """No line looks like a command of a CI service, which would be changed when it is printed."""
    (file,) = written(place, kind).iterdir()

    assert place.run("worker", "config", kind).out == file.read_text()


@pytest.mark.parametrize("flags", FLAGS)
def test_units_start_a_node_and_what_feeds_it(place: CliWorkspace, flags: tuple[str, ...]) -> None:
    files = written(place, "systemd", *flags)
    node = parsed(started(files / "kabuild-node.service"))
    worker = started(files / "kabuild-worker.service")
    (grid,) = read(files / "buildgrid.yaml")
    (allowed,) = grid["instances"][0]["services"][3]["command-allowlist"]
    program = (files / "kabuild-worker-exec").read_text()

    assert f'"{node["socket"]}"' in program.replace("'", '"')
    assert f"--runner-arg=--allow-executable={allowed}" in worker
    assert allowed.endswith("/kabuild-worker-exec")
    assert node["platform"] == ("cuda" if flags == GPUS else "cpu")
    assert f"--concurrent-jobs={9 if flags == GPUS else 8}" in worker
    assert f"pool={'h200' if flags == GPUS else 'cpu'}" in worker
    assert ("--bots-client-key=/etc/kabuild/tls/node.key" in worker) is ("--tls" in flags)
    assert grid["server"][0]["insecure-mode"] is ("--tls" not in flags)


@pytest.mark.parametrize("flags", FLAGS)
def test_compose_starts_the_same_node(place: CliWorkspace, flags: tuple[str, ...]) -> None:
    files = written(place, "compose", *flags)
    (compose,) = read(files / "compose.yaml")
    services = compose["services"]
    node = parsed(services["node"]["command"])

    assert str(node["signing_key"]) == "/run/secrets/node.key"
    assert {*services} == {"database", "server", "node", "casd", "worker"}
    assert ("deploy" in services["node"]) is (flags == GPUS)
    for service in services.values():
        if "build" in service:
            assert (files / service["build"]["dockerfile"]).exists()
    mounted = {name.partition(":")[0] for s in services.values() for name in s.get("volumes", ())}
    assert {name for name in mounted if not name.startswith(".")} == {*compose["volumes"]}


@pytest.mark.parametrize("flags", FLAGS)
def test_pods_start_the_same_node(place: CliWorkspace, flags: tuple[str, ...]) -> None:
    files = written(place, "kubernetes", *flags)
    (pool,) = read(files / "pool.yaml")
    pod = pool["spec"]["template"]["spec"]
    node, casd, worker = pod["containers"]

    parsed([*node["command"], *node["args"]])
    assert node.get("resources", {}).get("limits") == (
        {"nvidia.com/gpu": 8} if flags == GPUS else None
    )
    for container in (node, casd, worker):
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        assert {m["name"] for m in container["volumeMounts"]} <= {v["name"] for v in pod["volumes"]}
    assert [item["kind"] for item in read(files / "server.yaml")] == [
        "Service",
        "PersistentVolumeClaim",
        "Deployment",
    ]


def verified(units: Path, root: Path) -> str:
    """What systemd says of units on a machine with all the programs that they start."""
    target = root / "etc/systemd/system"
    target.mkdir(parents=True)
    for name in UNITS:
        shutil.copy(units / name, target)
        program = root / started(units / name)[0].lstrip("/")
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
    shutil.copytree(
        "/usr/lib/systemd/system",
        root / "usr/lib/systemd/system",
        symlinks=True,
        ignore=lambda _, names: [name for name in names if not name.endswith(".target")],
    )
    done = subprocess.run(
        ["systemd-analyze", "verify", f"--root={root}", "--man=no", *UNITS],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr + (f"exit code {done.returncode}" if done.returncode else "")


systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze")


@systemd
@pytest.mark.parametrize("flags", FLAGS)
def test_systemd_accepts_the_units(
    place: CliWorkspace, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    assert verified(written(place, "systemd", *flags), tmp_path / "root") == ""


@systemd
def test_systemd_would_name_a_mistake(place: CliWorkspace, tmp_path: Path) -> None:
    units = written(place, "systemd")
    file = units / UNITS[1]
    file.write_text(file.read_text().replace("KillMode=mixed", "KillMode=most"))

    assert "Failed to parse kill mode" in verified(units, tmp_path / "root")


@pytest.mark.parametrize(
    ("flag", "why"),
    [
        ("--host=a b", "must be a host"),
        ("--host=$(id)", "must be a host"),
        ("--pool=H200", "must be a name of a-z, 0-9 and '-'"),
        ("--platform=cuda:sm 90", "must be NAME[:ARCH]"),
        ("--workspace=here", "must be an absolute path without spaces"),
        ("--program=/opt/my kabuild", "must be an absolute path without spaces"),
        ("--database=mysql://x", "must be a URL like postgresql+psycopg2://"),
        ("--buildbox=bin", "must be an absolute path without spaces"),
        ("--registry=a\nb", "must be a registry like"),
        ("--port=0", "0 is not in the range"),
        ("--gpus=-1", "-1 is not in the range"),
    ],
)
def test_what_would_need_quotes_is_refused(place: CliWorkspace, flag: str, why: str) -> None:
    done = place.run("worker", "config", "systemd", flag)

    assert done.code == 2
    assert why in " ".join(done.err.split())


def test_buildbox_can_be_in_another_directory(place: CliWorkspace) -> None:
    units = written(place, "systemd", "--buildbox=/opt/buildbox/bin")
    casd, worker = (started(units / f"kabuild-{name}.service")[0] for name in ("casd", "worker"))
    runner = started(units / "kabuild-worker.service")[3]

    assert casd == "/opt/buildbox/bin/buildbox-casd"
    assert worker == "/opt/buildbox/bin/buildbox-worker"
    assert runner == "--buildbox-run=/opt/buildbox/bin/buildbox-run-hosttools"


def test_files_that_were_changed_are_kept(place: CliWorkspace) -> None:
    files = written(place, "compose")
    assert written(place, "compose") == files
    assert (files / "kabuild-worker-exec").stat().st_mode & 0o777 == 0o755
    changed = files / "Containerfile.server"
    changed.write_text("mine")
    (files / "compose.yaml").unlink()

    done = place.run("worker", "config", "compose", "-o", "fleet")

    assert done.code == 2
    assert "Containerfile.server exists and has other content; nothing was written" in done.err
    assert (changed.read_text(), (files / "compose.yaml").exists()) == ("mine", False)
    changed.unlink()
    changed.symlink_to("elsewhere")  # a link to nothing: the text would be written there
    assert place.run("worker", "config", "compose", "-o", "fleet").code == 2
    assert not (files / "elsewhere").exists()
