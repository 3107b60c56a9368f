"""What the program says of toolchains that this machine lacks."""

from __future__ import annotations

import subprocess
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest

from kabuild.cli import doctor
from kabuild.cli.doctor_toolchains import find_toolchains
from kabuild.cli.finding import State

DECLARED = """\
[[toolchain]]
name  = "here"
role  = "agent-cli"
local = "{here}"

[[toolchain]]
name  = "gone"
role  = "agent-cli"
local = "/no/such/directory"

[[toolchain]]
name = "new"
role = "agent-cli"
pypi = ["nobody-has-this==1.0"]

[[toolchain]]
name         = "old"
role         = "c++-compiler"
distribution = "click"
version      = "0.1"
"""


def test_what_is_missing_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/run").write_text("")
    (tmp_path / "WORKSPACE.toml").write_text('name = "test"\n')
    (tmp_path / "toolchains/mine").mkdir(parents=True)
    text = DECLARED.replace("{here}", str(tmp_path / "tools"))
    (tmp_path / "toolchains/mine/BUILD.toml").write_text(text)
    monkeypatch.setenv("KABUILD_CACHE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)

    found = {finding.name: finding for finding in find_toolchains()}

    assert found["here"].state is State.OK
    assert found["gone"].state is State.OPTIONAL
    assert "pin //toolchains/mine:gone --from" in found["gone"].advice
    assert "not locked (agent-cli)" in found["new"].found
    assert "lock //toolchains/mine:new" in found["new"].advice
    assert found["old"].state is State.PROBLEM
    assert "//toolchains/mine:old is pinned to click 0.1; " in found["old"].found
    assert found["old"].advice.endswith("pip install 'click==0.1'")


def test_outside_of_a_workspace_there_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert list(find_toolchains()) == []


def test_what_is_to_be_installed_has_a_version_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", absent)
    monkeypatch.setattr(
        metadata, "requires", lambda _: ["tritonium==2", "triton==3.6.0; os_name == 'posix'"]
    )

    found = {finding.name: finding.advice for finding in doctor.CHECKS[0]()}

    assert found["triton"].endswith(" -m pip install 'triton==3.6.0'")
    assert found["torch"].endswith(" -m pip install 'torch'")


def test_a_pytorch_without_bytecode_is_told_with_what_compiles_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As some installers leave it: each process compiles it again."""
    folder = tmp_path / "site-packages/torch"
    folder.mkdir(parents=True)
    (folder / "functional.py").write_text("")
    spec = SimpleNamespace(submodule_search_locations=[str(folder)])
    monkeypatch.setattr(doctor, "find_spec", lambda _: spec)

    (finding,) = doctor.CHECKS[1]()
    assert finding.state is State.OPTIONAL
    program, *arguments = finding.advice.split()
    assert arguments == ["-m", "compileall", "-q", "-j", "0", str(folder.parent)]

    subprocess.run([program, *arguments[:-1], str(folder)], check=True)
    (finding,) = doctor.CHECKS[1]()
    assert finding.state is State.OK
